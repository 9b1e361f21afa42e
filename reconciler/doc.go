// Package reconciler will be the door for pull-request-driven rollouts: it polls
// Git, plans, applies and reports. It is not built yet; the folder marks its place
// among the rooms.
package reconciler
