package forge

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"path"
	"strconv"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
)

// ReceiveLimits bound what strangers can make a receiver do. A field that is 0 takes its
// default.
type ReceiveLimits struct {
	Body     int64         // bytes of a delivery; default 1 MiB
	ReadTime time.Duration // to send it in; default 10 s
	Rate     float64       // deliveries a second from one source, after a burst; default 10
	Burst    int           // default 100
	AtOnce   int           // bodies being read at once; default 32
	Seen     int           // delivery ids that are remembered; default 4096
}

func (l ReceiveLimits) withDefaults() ReceiveLimits {
	if l.Body == 0 {
		l.Body = 1 << 20
	}
	if l.ReadTime == 0 {
		l.ReadTime = 10 * time.Second
	}
	if l.Rate == 0 {
		l.Rate = 10
	}
	if l.Burst == 0 {
		l.Burst = 100
	}
	if l.AtOnce == 0 {
		l.AtOnce = 32
	}
	if l.Seen == 0 {
		l.Seen = 4096
	}
	return l
}

// Receive is the handler of webhooks: POST to a path whose last element (or the path
// value "hook") names one of the hooks. It tells hint what was delivered; hint must not
// block, and is told each delivery id once.
//
// The order is the defence: method, name, rate of the source and announced length cost
// nothing; then the body is read within bounds of size, time and number; then its
// signature is checked; only then is its JSON looked at. So a stranger costs at most
// AtOnce × Body bytes of memory, and a delivery is never more than a hint to poll.
// Answers: 200 "accepted" or "coalesced", 401 for a wrong signature, 404, 405, 408, 413,
// 429 and 503 for the bounds, 500 when the secret cannot be read.
func Receive(hooks map[string]Hook, hint func(hook string, d Delivery), limits ReceiveLimits) http.Handler {
	limits = limits.withDefaults()
	s := &receiver{hooks: hooks, hint: hint, limits: limits, slots: make(chan struct{}, limits.AtOnce)}
	s.seen, _ = lru.New[seenKey, struct{}](limits.Seen) // fails on sizes below 1 only
	s.sources, _ = lru.New[netip.Prefix, *rate.Limiter](mostSources)
	return s
}

// mostSources is for how many addresses a rate is kept.
const mostSources = 4096

type receiver struct {
	hooks   map[string]Hook
	hint    func(string, Delivery)
	limits  ReceiveLimits
	slots   chan struct{}
	seen    *lru.Cache[seenKey, struct{}]
	sources *lru.Cache[netip.Prefix, *rate.Limiter]
}

// seenKey is a delivery of one hook.
type seenKey struct{ hook, id string }

func (s *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		fail(w, http.StatusMethodNotAllowed, "webhooks are sent by POST")
		return
	}
	name := r.PathValue("hook")
	if name == "" {
		name = path.Base(r.URL.Path)
	}
	hook, ok := s.hooks[name]
	if !ok {
		fail(w, http.StatusNotFound, "no webhook of this name is configured")
		return
	}
	if !s.allow(r.RemoteAddr) {
		refuse(w, http.StatusTooManyRequests, "too many deliveries from this address")
		return
	}
	body, ok := s.read(w, r)
	if !ok {
		return
	}
	d, err := hook.Delivery(r.Header, body)
	var bad *BadSignature
	switch {
	case errors.As(err, &bad):
		fail(w, http.StatusUnauthorized, bad.Error())
		return
	case err != nil:
		// What went wrong with our own secret is not for strangers.
		fail(w, http.StatusInternalServerError, "the webhook cannot be checked at present")
		return
	}
	if !s.first(name, d.ID, body) {
		answer(w, "coalesced")
		return
	}
	s.hint(name, d)
	answer(w, "accepted")
}

// read takes the body within the bounds; when it cannot, it has answered.
func (s *receiver) read(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	if r.ContentLength > s.limits.Body {
		w.Header().Set("Connection", "close")
		fail(w, http.StatusRequestEntityTooLarge, "the body is too large")
		return nil, false
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		refuse(w, http.StatusServiceUnavailable, "too many deliveries at once")
		return nil, false
	}
	// A recorder in a test has no connection, and so no deadline; the bound of size
	// holds there as well.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(s.limits.ReadTime))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.limits.Body))
	var tooLarge *http.MaxBytesError
	var timeout net.Error
	switch {
	case errors.As(err, &tooLarge):
		w.Header().Set("Connection", "close")
		fail(w, http.StatusRequestEntityTooLarge, "the body is too large")
	case errors.As(err, &timeout) && timeout.Timeout():
		w.Header().Set("Connection", "close")
		fail(w, http.StatusRequestTimeout, "the body came too slowly")
	case err != nil:
		fail(w, http.StatusBadRequest, "the body could not be read")
	default:
		_ = control.SetReadDeadline(time.Time{})
		return body, true
	}
	return nil, false
}

// allow takes one from the budget of a source: an IPv4 address, or the 64 bits of an
// IPv6 one that a single host can choose the rest of.
func (s *receiver) allow(remote string) bool {
	source := netip.Prefix{}
	if at, err := netip.ParseAddrPort(remote); err == nil {
		bits := 32
		if at.Addr().Unmap().Is6() {
			bits = 64
		}
		source, _ = at.Addr().Unmap().WithZone("").Prefix(bits)
	}
	fresh := rate.NewLimiter(rate.Limit(s.limits.Rate), s.limits.Burst)
	if known, ok, _ := s.sources.PeekOrAdd(source, fresh); ok {
		s.sources.Get(source) // asked for, and so not the next to be forgotten
		return known.Allow()
	}
	return fresh.Allow()
}

// first reports whether a delivery is new, and remembers it. One without an id is known
// by its body.
func (s *receiver) first(hook, id string, body []byte) bool {
	if id == "" {
		sum := sha256.Sum256(body)
		id = "sha256:" + hex.EncodeToString(sum[:])
	}
	known, _ := s.seen.ContainsOrAdd(seenKey{hook: hook, id: id}, struct{}{})
	return !known
}

func refuse(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Retry-After", strconv.Itoa(10))
	w.Header().Set("Connection", "close")
	fail(w, status, why)
}

func answer(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, text+"\n")
}

// fail answers with an error, in the form that all errors of the reconciler's door have.
func fail(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(struct {
		Error string `json:"error"`
	}{why})
}
