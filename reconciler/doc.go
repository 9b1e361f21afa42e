// Package reconciler is the door for pull-request-driven rollouts: it follows Git,
// plans what a commit asks for, judges it by policy and approval, applies it, and
// reports on the pull request, for weeks, alone.
//
// It holds no worker while a rollout runs. Each pass reads (refs, files, the engine,
// pull requests), decides, acts, and records. An intent is in the journal before its
// effect, so that whoever comes after a crash looks at the world first and does nothing
// twice. Sub-rooms are ports with their adaptors: gitsource (commits and blobs), forge
// (pull requests, statuses, comments) and journal (what must not be forgotten).
package reconciler
