package gitsource_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource/gittest"
)

// F9: a black hole after the list of refs. The call ends at its deadline; another
// remote keeps its cadence meanwhile.
func TestBlackHoleEndsAtTheDeadline(t *testing.T) {
	for _, on := range []gittest.Kind{gittest.Refs, gittest.Pack} {
		t.Run(string(on), func(t *testing.T) {
			bothStores(t, func(t *testing.T, kind gitsource.StoreKind) {
				s, repo := server(t)
				c := repo.Commit("main", map[string]string{"a.hcl": "1"})
				hole, reached := s.BlackHole(on)
				heal := s.Inject(hole)
				r := open(t, repo.URL(), kind)
				ctx, cancel := context.WithCancelCause(t.Context())
				done := make(chan error, 1)
				go func() {
					_, err := r.Read(ctx, gitsource.Resolved{Commit: c, State: gitsource.Found})
					done <- err
				}()
				<-reached
				_, other := server(t)
				other.Commit("main", map[string]string{"b.hcl": "2"})
				require.Equal(t, map[string]string{"b.hcl": "2"}, texts(read(t, open(t, other.URL(), kind), main)))
				cancel(context.DeadlineExceeded)
				err := <-done
				require.ErrorIs(t, err, context.Canceled)
				noneHang(t)
				heal()
				require.Equal(t, map[string]string{"a.hcl": "1"}, texts(read(t, r, main)), "nothing half is left")
			})
		})
	}
}

func TestSlowServerIsWaitedFor(t *testing.T) {
	bothStores(t, func(t *testing.T, kind gitsource.StoreKind) {
		s, repo := server(t)
		repo.Commit("main", map[string]string{"a.hcl": "1"})
		gate, asked := make(chan struct{}), make(chan struct{})
		s.Inject(s.Slow(gittest.Pack, gate), gittest.Before(gittest.Pack, func() { close(asked) }))
		r := open(t, repo.URL(), kind)
		at := resolve(t, r, main)
		done := make(chan error, 1)
		go func() {
			_, err := r.Read(bounded(t), at)
			done <- err
		}()
		<-asked
		require.Empty(t, done, "nothing is told before the server has answered")
		close(gate)
		require.NoError(t, <-done)
	})
}

func TestDeadlineOfMilliseconds(t *testing.T) {
	s, repo := server(t)
	repo.Commit("main", map[string]string{"a.hcl": "1"})
	hole, _ := s.BlackHole(gittest.Refs)
	s.Inject(hole)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := open(t, repo.URL(), gitsource.Shallow).Refs(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	noneHang(t)
}

// A pack that is cut at any place, or has a wrong byte, is an error and leaves nothing.
func TestTruncatedAndGarbledPacks(t *testing.T) {
	bothStores(t, func(t *testing.T, kind gitsource.StoreKind) {
		s, repo := server(t)
		repo.Commit("main", map[string]string{"a.hcl": strings.Repeat("text ", 2000)})
		r := open(t, repo.URL(), kind)
		at := resolve(t, r, main)
		for _, after := range []int{0, 4, 8, 30, 100, 200} {
			heal := s.Inject(gittest.Truncated(gittest.Pack, after))
			_, err := r.Read(bounded(t), at)
			require.Error(t, err, "cut after %d bytes", after)
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			heal()
		}
		for _, fromEnd := range []int{10, 40, 60} {
			heal := s.Inject(gittest.Garbled(gittest.Pack, fromEnd))
			_, err := r.Read(bounded(t), at)
			require.Error(t, err, "wrong byte %d before the end", fromEnd)
			heal()
		}
		require.Len(t, texts(read(t, r, main)), 1)
	})
}

func TestCutListOfRefsIsNoList(t *testing.T) {
	s, repo := server(t)
	repo.Commit("main", map[string]string{"a.hcl": "1"})
	repo.Commit("next", map[string]string{"a.hcl": "1"})
	whole := len("001e# service=git-upload-pack\n0000")
	for _, after := range []int{0, 3, whole, whole + 60, whole + 330} {
		heal := s.Inject(gittest.Truncated(gittest.Refs, after))
		refs, err := open(t, repo.URL(), gitsource.Shallow).Refs(bounded(t))
		require.Error(t, err, "cut after %d bytes", after)
		require.Empty(t, refs.Commits)
		heal()
	}
}

func TestStatusesByTheReactionThatTheyNeed(t *testing.T) {
	for name, c := range map[string]struct {
		fault   gittest.Fault
		refused bool
		limited time.Duration
		says    string
	}{
		"401":                     {gittest.Status(gittest.Refs, 401), true, 0, "wants other credentials"},
		"403":                     {gittest.Status(gittest.Refs, 403), true, 0, "need the right to read"},
		"404":                     {gittest.Status(gittest.Refs, 404), true, 0, "no such repository"},
		"418":                     {gittest.Status(gittest.Refs, 418), true, 0, "answered 418"},
		"429":                     {gittest.Status(gittest.Refs, 429, "Retry-After", "120"), false, 2 * time.Minute, "too many calls"},
		"429 without a time":      {gittest.Status(gittest.Refs, 429), false, time.Minute, "too many calls"},
		"403 with a rate limit":   {gittest.Status(gittest.Refs, 403, "X-RateLimit-Remaining", "0"), false, time.Minute, "too many calls"},
		"503 with a time":         {gittest.Status(gittest.Refs, 503, "Retry-After", "30"), false, 30 * time.Second, "too many calls"},
		"500":                     {gittest.Status(gittest.Refs, 500), false, 0, "the server answered 500"},
		"a page in place of refs": {gittest.WrongType(gittest.Refs), true, 0, "a sign-in page answers in its place"},
	} {
		t.Run(name, func(t *testing.T) {
			s, repo := server(t)
			repo.Commit("main", map[string]string{"a.hcl": "1"})
			s.Inject(c.fault)
			r := open(t, repo.URL(), gitsource.Shallow, func(o *gitsource.Options) {
				o.Auth.Basic = &gitsource.Basic{User: "ada", Password: fixed("hunter2-secret")}
			})
			_, err := r.Refs(bounded(t))
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), "hunter2")
			refused := &gitsource.Refused{}
			require.Equal(t, c.refused, errors.As(err, &refused))
			limited := &gitsource.Limited{}
			require.Equal(t, c.limited > 0, errors.As(err, &limited))
			if c.limited > 0 {
				require.WithinDuration(t, time.Now().Add(c.limited), limited.Until, 10*time.Second)
			}
		})
	}
}

func TestPageInPlaceOfAPack(t *testing.T) {
	bothStores(t, func(t *testing.T, kind gitsource.StoreKind) {
		s, repo := server(t)
		repo.Commit("main", map[string]string{"a.hcl": "1"})
		r := open(t, repo.URL(), kind)
		at := resolve(t, r, main)
		s.Inject(gittest.WrongType(gittest.Pack))
		_, err := r.Read(bounded(t), at)
		refused := &gitsource.Refused{}
		require.ErrorAs(t, err, &refused)
	})
}

func TestPackWithoutEndEndsAtItsLimit(t *testing.T) {
	bothStores(t, func(t *testing.T, kind gitsource.StoreKind) {
		s, repo := server(t)
		repo.Commit("main", map[string]string{"a.hcl": "1"})
		r := open(t, repo.URL(), kind, func(o *gitsource.Options) { o.Limits.PackBytes = 1 << 20 })
		at := resolve(t, r, main)
		heal := s.Inject(s.Huge())
		_, err := r.Read(bounded(t), at)
		over := &gitsource.TooMuch{}
		require.ErrorAs(t, err, &over)
		require.Contains(t, err.Error(), "the pack: more than the limit of 1 MiB")
		heal()
		require.Equal(t, map[string]string{"a.hcl": "1"}, texts(read(t, r, main)))
	})
}

func TestRefMovesInTheMiddleOfAFetch(t *testing.T) {
	bothStores(t, func(t *testing.T, kind gitsource.StoreKind) {
		s, repo := server(t)
		repo.Commit("main", map[string]string{"a.hcl": "1"})
		r := open(t, repo.URL(), kind)
		at := resolve(t, r, main)
		// Between the list of the fetch and its pack, the branch is rewritten.
		heal := s.Inject(gittest.Before(gittest.Pack, func() { repo.ForcePush("main", repo.Make(spec("", "2"))) }))
		if _, err := r.Read(bounded(t), at); err != nil { // the server may still hand out what it has listed
			require.NotContains(t, err.Error(), "damaged")
		}
		heal()
		require.Equal(t, map[string]string{"a.hcl": "2"}, texts(read(t, r, main)))
	})
}

func TestWaysToSignIn(t *testing.T) {
	for name, c := range map[string]struct {
		server gittest.Options
		right  gitsource.Auth
		wrong  gitsource.Auth
	}{
		"basic":  {gittest.Options{User: "ada", Password: "s3cret"}, basic("ada", "s3cret"), basic("ada", "wr0ng-one")},
		"bearer": {gittest.Options{Bearer: "t0ken"}, gitsource.Auth{Bearer: fixed("t0ken")}, gitsource.Auth{Bearer: fixed("wr0ng-one")}},
		"app":    {gittest.Options{User: "x-access-token", Password: "ghs_1"}, gitsource.Auth{App: fixed("ghs_1")}, gitsource.Auth{App: fixed("wr0ng-one")}},
	} {
		t.Run(name, func(t *testing.T) {
			c.server.TLS = gittest.HTTPS
			s := gittest.New(t, c.server)
			repo := s.Repository("acme/infra")
			repo.Commit("main", map[string]string{"a.hcl": "1"})
			with := func(a gitsource.Auth) func(*gitsource.Options) {
				return func(o *gitsource.Options) { o.Auth, o.CA = a, s.CA() }
			}
			require.Equal(t, map[string]string{"a.hcl": "1"}, texts(read(t, open(t, repo.URL(), gitsource.Mirror, with(c.right)), main)))
			for _, a := range []gitsource.Auth{c.wrong, {}} {
				_, err := open(t, repo.URL(), gitsource.Mirror, with(a)).Refs(bounded(t))
				require.ErrorContains(t, err, "wants other credentials (401)")
				require.NotContains(t, err.Error(), "wr0ng")
			}
			_, err := open(t, repo.URL(), gitsource.Mirror, func(o *gitsource.Options) { o.Auth = c.right }).Refs(bounded(t))
			require.ErrorContains(t, err, "certificate", "a certificate of nobody known is not taken")
		})
	}
}

func basic(user, password string) gitsource.Auth {
	return gitsource.Auth{Basic: &gitsource.Basic{User: user, Password: fixed(password)}}
}

// A rotated secret is taken at the next call, without opening the remote again.
func TestRotatedTokenIsTakenAtTheNextCall(t *testing.T) {
	s := gittest.New(t, gittest.Options{Bearer: "new-token"})
	repo := s.Repository("acme/infra")
	repo.Commit("main", map[string]string{"a.hcl": "1"})
	token := "old-token"
	r := open(t, repo.URL(), gitsource.Mirror, func(o *gitsource.Options) {
		o.Auth.Bearer = func(context.Context) (string, error) { return token, nil }
	})
	_, err := r.Refs(bounded(t))
	require.Error(t, err)
	token = "new-token"
	require.Equal(t, map[string]string{"a.hcl": "1"}, texts(read(t, r, main)))
}

// What a redirect to another origin gets to see is not the credentials.
func TestRedirectToAnotherOriginGetsNoCredentials(t *testing.T) {
	thief := gittest.New(t, gittest.Options{})
	var seen []string
	thief.Inject(gittest.Fault{Do: func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		seen = append(seen, r.Header.Get("Authorization"))
		http.NotFound(w, r)
	}})
	s, repo := server(t)
	s.Inject(gittest.Fault{Do: func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		http.Redirect(w, r, thief.URL+r.URL.Path+"?"+r.URL.RawQuery, http.StatusMovedPermanently)
	}})
	_, err := open(t, repo.URL(), gitsource.Shallow, func(o *gitsource.Options) { o.Auth = basic("ada", "s3cret") }).Refs(bounded(t))
	require.Error(t, err)
	require.Equal(t, []string{""}, seen)
}

func TestSecretsThatCannotBeRead(t *testing.T) {
	_, repo := server(t)
	_, err := open(t, repo.URL(), gitsource.Shallow, func(o *gitsource.Options) {
		o.Auth.Bearer = func(context.Context) (string, error) { return "", errors.New("open token: no such file") }
	}).Refs(bounded(t))
	require.ErrorContains(t, err, "the token for "+repo.URL()+" cannot be read: open token: no such file")
}

// One host's refusal is for all remotes of that host that share the limiter.
func TestHostThatAsksForPatienceIsLeftAloneByAllRemotes(t *testing.T) {
	s, repo := server(t)
	repo.Commit("main", map[string]string{"a.hcl": "1"})
	other := s.Repository("acme/other")
	other.Commit("main", map[string]string{"a.hcl": "1"})
	hosts := gitsource.NewHosts(0)
	shared := func(o *gitsource.Options) { o.Hosts = hosts }
	heal := s.Inject(gittest.Status("", 429, "Retry-After", "3600"))
	_, err := open(t, repo.URL(), gitsource.Shallow, shared).Refs(bounded(t))
	require.Error(t, err)
	heal()
	_, err = open(t, other.URL(), gitsource.Shallow, shared).Refs(bounded(t))
	limited := &gitsource.Limited{}
	require.ErrorAs(t, err, &limited)
	require.Equal(t, 1, s.Calls(gittest.Refs), "the second remote has not called")
}
