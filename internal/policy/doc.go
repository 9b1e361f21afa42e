// Package policy judges a plan by Rego rules, with Open Policy Agent as a library.
//
// A plan is the JSON of terraform show -json, or the same shape from any other door.
// A rule is a partial set named deny or warn, in any package:
//
//	deny contains {"msg": "…", "rule": "first_step", "address": r.address} if { … }
//
// or contains plain strings. What deny holds refuses the plan, what warn holds is told.
// A denial may name who can lift it: {"msg": "…", "override": ["platform-leads"]}.
//
// Rules come from people, sometimes from a pull request, so they run without the
// network, the environment and the clock of this machine: the instant is given. A rule
// that fails, or that returns something else, is an error and never a pass.
package policy
