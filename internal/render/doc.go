// Package render is the one renderer of plans, live rollouts and event feeds: as plain
// text for terminals, as Markdown for the comment of a pull request, as lines for commit
// statuses. Terminals get colour only when it is asked for; provider diagnostics and
// comments use the same words. What others wrote (names, reasons, messages) is made
// inert: no control character of theirs reaches a terminal, and in Markdown nothing of
// theirs is a mention, a reference, a link, an image or HTML.
package render
