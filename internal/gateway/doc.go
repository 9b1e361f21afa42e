// Package gateway is the data plane: an OpenAI-compatible proxy that splits the
// requests of an endpoint over its deployments, exactly, and measures each.
//
// # Routes
//
// A [rollout.Route] replaces the whole routing of one endpoint in one atomic
// step ([Gateway.Apply]); a bad or older one is refused and the old one keeps
// serving. The table holds routing only: what is counted, what is in flight and
// the connections to replicas live beside it, so a swap cuts no stream, drops no
// connection and loses no count.
//
// # Which deployment answers
//
// The body's model names an endpoint or pins one of its deployments. While a
// rollout holds a pair, the pair gets exactly its share of the endpoint and the
// target exactly its percent of the pair, whatever the replica counts do; the
// other members share the rest by weight × ready replicas. Without a pair all
// members do. The choice is a hash of a sticky key (prompt_cache_key, then user,
// then the conversation), so raising a share only adds keys to the target and
// lowering it only gives them back; without any key it is random per request.
// Inside a deployment two random ready replicas are compared and the one with
// fewer requests in flight is taken.
//
// # Where a request ends
//
// A request with both a Content-Length and a Transfer-Encoding, one of HTTP/1.0 with
// the latter, and a body in malformed chunks are answered 400. After these and after
// every other request in chunks the connection is closed, so that nothing can be
// smuggled past a proxy in front that disagrees about where a request ends. On TLS
// connections, and behind another server than [Gateway.Serve]'s, the first of them is
// served by its chunks before the connection is closed, as RFC 9112 (6.1) lets it be:
// there net/http hides the length.
//
// # What is held
//
// A body is held until its answer begins, for a replay may need it until then, and let
// go at that moment. All bodies together take at most Config.MaxBuffered; a request
// beyond that is answered 503 with Retry-After. The garbage collector lets the process
// have about twice as much. Of a length that a client claims only 1 MiB is believed
// until as much has come; then the buffer is exactly as long as the body. A client must
// not only not be silent but keep a pace of 64 KiB/s after its first 30 s: else 408.
//
// # When a replica fails
//
// The body is held until the answer begins, so nothing that fails before the
// first byte of an answer needs to reach the client:
//
//   - a reused connection that breaks is the keep-alive race: the replica's idle
//     connections are dropped and the request is sent once more on a fresh one;
//   - a replica that cannot be dialed is passed over for each other ready one of
//     the same deployment;
//   - a fresh connection that breaks, or an answer whose head is malformed (no
//     HTTP/1, a status below 100, two lengths, a control character, a head over
//     256 KiB, interim responses without end), may mean that this very request
//     kills replicas. It is sent to another replica, but kills two of one
//     deployment at most and three in all.
//
// When the chosen deployment has no replica left that may be tried, the request falls over to the
// other side of the pair, even one at 0 %, or to the other members: an accepted
// request gets an answer from a model. The failure is counted as a server error
// of the deployment that was chosen, and the answer as a request of the one that
// gave it, so a target's failures never enter the source's metrics as its own
// and are never hidden by the source's success. The answer names both
// (X-Sluice-Deployment and X-Sluice-Fallback-From). A pinned request does not
// fall over.
//
// A replica whose connections cannot be opened or break, or that answers malformed
// heads, five times in a row is ejected: passed over for 1 s, then for twice as long
// each time up to 30 s. After each cool-down one request is sent to it to find out; one
// whose answer begins brings the replica back, and one that fails costs its client
// nothing but the detour. Nothing else ends an ejection but a restart, so a replica
// does not flap inside its cool-down. A 5xx that the model gives is an answer and
// ejects nobody: the gates judge it. When all replicas of a deployment that are left
// are ejected, the gateway fails open: one of them is tried before the request falls
// over, all of them where nothing can stand in, and an answer brings it back.
//
// After the first byte nothing can be replayed: an upstream that dies aborts the
// client's connection and counts as a server error. A client that leaves, in any
// phase, closes the upstream connection at once and counts as canceled.
package gateway
