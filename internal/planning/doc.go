// Package planning turns a declaration into a plan: the journey step by step, its
// totals, what its gates need, and findings with stable codes. It is pure: the same
// declaration, knowledge and timings always give the same plan, so that a plan can
// be approved by its digest and printed alike at every door.
package planning
