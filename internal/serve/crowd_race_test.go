//go:build race

package serve

// crowds is the smaller of the two numbers of rollouts that are compared.
const crowds = 50
