package meter

import (
	"encoding/binary"
	"errors"
	"math"
)

// ErrCorrupt tells that a stored slot or sketch cannot be read.
var ErrCorrupt = errors.New("meter: corrupt slot")

// AppendBinary appends the sketch in its compact form: for each non-empty bucket
// the distance from the one before and its count, both as varints.
func (s *Sketch) AppendBinary(b []byte) ([]byte, error) {
	return s.appendTo(b), nil
}

func (s *Sketch) appendTo(b []byte) []byte {
	last := -1
	for i, n := range s.counts {
		if n == 0 {
			continue
		}
		b = binary.AppendUvarint(b, uint64(i-last))
		b = binary.AppendUvarint(b, n)
		last = i
	}
	return b
}

// MergeBinary adds a sketch in its compact form. On ErrCorrupt the receiver is
// unchanged.
func (s *Sketch) MergeBinary(b []byte) error {
	if err := walkSketch(b, func(int, uint64) {}); err != nil {
		return err
	}
	return walkSketch(b, func(i int, n uint64) {
		s.counts[i] += n
		s.total += n
	})
}

// walkSketch calls visit for each bucket of a compact sketch.
func walkSketch(b []byte, visit func(bucket int, count uint64)) error {
	r := reader{rest: b}
	last, total := -1, uint64(0)
	for len(r.rest) > 0 {
		step, n := r.uvarint(), r.uvarint()
		if r.bad || step == 0 || step > uint64(buckets-1-last) || n == 0 || n > math.MaxUint32<<8-total {
			return ErrCorrupt
		}
		last += int(step)
		total += n
		visit(last, n)
	}
	return nil
}

// reader takes varints off a slice and remembers whether one was missing.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.bad, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// payloadVersion is the first byte of every payload.
const payloadVersion = 1

// encode writes what a slot of the given kind keeps of t.
func (t *tally) encode(kind Kind) []byte {
	b := []byte{payloadVersion}
	switch kind {
	case KindTraffic:
		for _, n := range t.counts {
			b = binary.AppendUvarint(b, n)
		}
		b = binary.AppendUvarint(b, t.latency)
		b = binary.AppendUvarint(b, t.inflight)
		b = append(b, t.sketch...)
	case KindReady:
		b = binary.AppendUvarint(b, t.ready)
	case KindWatch:
		b = binary.AppendUvarint(b, uint64(t.watchFrom))
		b = binary.AppendUvarint(b, uint64(t.watchTo))
	}
	return b
}

// decode reads a slot back. ErrCorrupt for anything that encode does not write.
func decode(s Slot) (tally, error) {
	t := tally{start: s.Start.UnixNano(), length: int64(s.Length)}
	if len(s.Payload) == 0 || s.Payload[0] != payloadVersion || s.Length <= 0 {
		return tally{}, ErrCorrupt
	}
	r := reader{rest: s.Payload[1:]}
	switch s.Kind {
	case KindTraffic:
		for i := range t.counts {
			t.counts[i] = r.uvarint()
		}
		t.latency, t.inflight = r.uvarint(), r.uvarint()
		t.sketch, r.rest = r.rest, nil
		if walkSketch(t.sketch, func(int, uint64) {}) != nil {
			return tally{}, ErrCorrupt
		}
	case KindReady:
		t.ready = r.uvarint()
	case KindWatch:
		t.watchFrom, t.watchTo = int64(r.uvarint()), int64(r.uvarint())
		if t.watchFrom < 0 || t.watchTo < t.watchFrom || t.watchTo > t.length {
			return tally{}, ErrCorrupt
		}
	default:
		return tally{}, ErrCorrupt
	}
	if r.bad || len(r.rest) > 0 {
		return tally{}, ErrCorrupt
	}
	return t, nil
}
