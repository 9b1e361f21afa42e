package gitsource_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource/gittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bothStores runs a scenario with a mirror and with shallow fetches.
func bothStores(t *testing.T, scenario func(t *testing.T, kind gitsource.StoreKind)) {
	for _, kind := range []gitsource.StoreKind{gitsource.Mirror, gitsource.Shallow} {
		t.Run(string(kind), func(t *testing.T) { scenario(t, kind) })
	}
}

// open opens a remote over HTTP.
func open(t *testing.T, url string, kind gitsource.StoreKind, change ...func(*gitsource.Options)) gitsource.Remote {
	t.Helper()
	o := gitsource.Options{URL: url, Store: gitsource.Store{Kind: kind, Folder: t.TempDir()}}
	for _, c := range change {
		c(&o)
	}
	r, err := gitsource.Open(o)
	require.NoError(t, err)
	return r
}

func include(patterns ...string) func(*gitsource.Options) {
	return func(o *gitsource.Options) { o.Include = patterns }
}

// bounded is a context that no honest call of these tests outlives.
func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// resolve polls a wanted ref.
func resolve(t *testing.T, r gitsource.Remote, w gitsource.Wanted) gitsource.Resolved {
	t.Helper()
	refs, err := r.Refs(bounded(t))
	require.NoError(t, err)
	return w.Resolve(refs)
}

// read polls a wanted ref and reads what it points at.
func read(t *testing.T, r gitsource.Remote, w gitsource.Wanted) gitsource.Snapshot {
	t.Helper()
	at := resolve(t, r, w)
	require.Equal(t, gitsource.Found, at.State, at.Reason)
	s, err := r.Read(bounded(t), at)
	require.NoError(t, err)
	return s
}

// texts are the files of a snapshot.
func texts(s gitsource.Snapshot) map[string]string {
	all := map[string]string{}
	for _, f := range s.Files {
		all[f.Path] = string(f.Bytes)
	}
	return all
}

// reasons are the refusals of a snapshot.
func reasons(s gitsource.Snapshot) map[string]string {
	all := map[string]string{}
	for _, r := range s.Refused {
		all[r.Path] = r.Reason
	}
	return all
}

func server(t *testing.T) (*gittest.Server, *gittest.Repository) {
	s := gittest.New(t, gittest.Options{})
	return s, s.Repository("acme/infra")
}

// hangs is how many calls still run when they should have ended.
func noneHang(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return gitsource.Abandoned() == 0 }, 20*time.Second, 5*time.Millisecond, "abandoned calls never ended")
}
