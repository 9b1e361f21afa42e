// Package notify tells people and programs what happened: by a signed webhook, to a
// Slack-compatible address, or on standard output.
//
// What is to be told is put into the journal in the same batch as the change that it
// tells (Outbox.Enqueue), and sent later (Outbox.Deliver), so that a crash neither loses
// nor invents it. An event is told apart by its key, which has no clock and no rendered
// text in it: one that was sent is not sent again. A process that dies between the answer
// of a receiver and its own record of it sends once more, under the same delivery id.
package notify
