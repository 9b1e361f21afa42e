// Package declaration reads a folder of HCL, the same that terraform apply takes,
// into typed declarations: endpoints, deployments and rollouts, every value with
// the place where it is written, references between blocks resolved to an order.
//
// It evaluates what is pure (variables, locals, count and for_each, most of
// Terraform's functions) and refuses by file and line what only Terraform can do:
// modules, other providers, functions that look at the world. What an engine gives
// (an id) stays a Ref, unless Options.Known tells it.
//
// Input may be hostile. Files are capped in size, nesting and number, links do not
// lead out of the folder, and no expression is evaluated whose result could be
// larger than a bound that is computed before.
package declaration
