package journal

import (
	"context"
	"time"
)

const leaseRow = "SELECT fence, id, host, pid, since, renewed, expires FROM lease WHERE one = 1"

// scanner is one row of a result.
type scanner interface{ Scan(into ...any) error }

func scanLease(row scanner) (Lease, error) {
	var l Lease
	var since, renewed, expires int64
	if err := row.Scan(&l.Fence, &l.Holder.ID, &l.Holder.Host, &l.Holder.PID, &since, &renewed, &expires); err != nil {
		return Lease{}, err
	}
	l.Holder.Since, l.Renewed, l.Expires = instant(since), instant(renewed), instant(expires)
	return l, nil
}

// lease reads the lease and keeps others from changing it until the transaction ends.
func (w *writer) lease() Lease {
	if w.err != nil {
		return Lease{}
	}
	l, err := scanLease(w.tx.QueryRowContext(w.ctx, leaseRow+w.d.lock))
	if err != nil {
		w.err = w.d.translate(err)
	}
	return l
}

// save writes the lease's row. The fence never falls.
func (w *writer) save(l Lease) {
	w.exec("UPDATE lease SET fence = ?, id = ?, host = ?, pid = ?, since = ?, renewed = ?, expires = ? WHERE one = 1",
		int64(l.Fence), l.Holder.ID, l.Holder.Host, l.Holder.PID, stamp(l.Holder.Since), stamp(l.Renewed), stamp(l.Expires))
}

func (d *database) Acquire(ctx context.Context, who Holder, now time.Time, ttl time.Duration) (Lease, error) {
	who, err := who.Admit()
	if err != nil {
		return Lease{}, err
	}
	var mine Lease
	err = d.inTx(ctx, func(w *writer) {
		there := w.lease()
		if w.err == nil && there.Holder.ID != who.ID && !there.Free(now) {
			w.err = &Held{By: there}
		}
		mine = Lease{Holder: who, Fence: there.Fence + 1, Renewed: now, Expires: now.Add(ttl)}
		w.save(mine)
	})
	if err != nil {
		return Lease{}, err
	}
	return mine, nil
}

func (d *database) Renew(ctx context.Context, l Lease, now time.Time, ttl time.Duration) (Lease, error) {
	l.Renewed, l.Expires = now, now.Add(ttl)
	if err := d.fenced(ctx, l.Fence, func(w *writer) { w.save(l) }); err != nil {
		return Lease{}, err
	}
	return l, nil
}

func (d *database) Release(ctx context.Context, l Lease) error {
	return d.inTx(ctx, func(w *writer) {
		if there := w.lease(); w.err == nil && there.Fence == l.Fence {
			w.save(Lease{Fence: there.Fence + 1})
		}
	})
}

func (d *database) ForceRelease(ctx context.Context, now time.Time, stale time.Duration) (Lease, error) {
	var was Lease
	err := d.inTx(ctx, func(w *writer) {
		was = w.lease()
		switch {
		case w.err != nil:
		case was.Holder.ID == "":
			w.err = ErrNone
		case was.Fresh(now, stale):
			w.err = &Held{By: was}
		default:
			w.save(Lease{Fence: was.Fence + 1})
		}
	})
	if err != nil {
		return Lease{}, err
	}
	return was, nil
}

func (d *database) Holder(ctx context.Context) (Lease, error) {
	l, err := scanLease(d.read.QueryRowContext(ctx, d.words(leaseRow)))
	if err != nil {
		return Lease{}, d.translate(err)
	}
	if l.Holder.ID == "" {
		return Lease{}, ErrNone
	}
	return l, nil
}
