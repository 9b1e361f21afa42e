// Package render is the one renderer of plans, live rollouts and event feeds, as
// plain text. Terminals get colour only when it is asked for; provider diagnostics
// use the same words in short form. What others wrote (names, reasons, messages)
// is made inert: no control character of theirs reaches a terminal.
package render
