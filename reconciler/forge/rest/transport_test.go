package rest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/rest"
)

func bearer(h http.Header, token string) { h.Set("Authorization", "Bearer "+token) }

// client is one for a server, with a token that is read anew as often as it is asked.
func client(t *testing.T, s *httptest.Server, read func(context.Context) (string, error)) *http.Client {
	t.Helper()
	base, err := url.Parse(s.URL)
	require.NoError(t, err)
	return rest.Client(rest.Options{Base: base, Tokens: rest.Ask(read), Authorize: bearer})
}

func send(t *testing.T, c *http.Client, method, address, body string) (string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	require.NoError(t, err)
	resp, err := c.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	content, err := io.ReadAll(resp.Body)
	return string(content), err
}

func TestATokenThatWasRotatedIsReadAgainAndTheCallRepeated(t *testing.T) {
	valid := "first"
	var bodies []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, _ := io.ReadAll(r.Body)
		if r.Header.Get("Authorization") != "Bearer "+valid {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		bodies = append(bodies, string(content))
	}))
	defer s.Close()
	reads := 0
	c := client(t, s, func(context.Context) (string, error) { reads++; return valid, nil })
	for range 3 {
		_, err := send(t, c, http.MethodPost, s.URL, "hello")
		require.NoError(t, err)
	}
	assert.Equal(t, 1, reads, "a token is kept while it is taken")
	valid = "second"
	_, err := send(t, c, http.MethodPost, s.URL, "hello")
	require.NoError(t, err)
	assert.Equal(t, 2, reads)
	assert.Equal(t, []string{"hello", "hello", "hello", "hello"}, bodies)
}

func TestAWrongTokenIsTriedTwiceAndThenRefused(t *testing.T) {
	var calls atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		http.Error(w, `{"message":"Bad credentials"}`, http.StatusUnauthorized)
	}))
	defer s.Close()
	_, err := send(t, client(t, s, func(context.Context) (string, error) { return "wrong", nil }), http.MethodGet, s.URL, "")
	var answer *rest.Answer
	require.ErrorAs(t, err, &answer)
	assert.Equal(t, http.StatusUnauthorized, answer.Status)
	assert.Equal(t, "Bad credentials", answer.Message())
	assert.NotContains(t, err.Error(), "wrong")
	assert.EqualValues(t, 2, calls.Load())

	_, err = send(t, client(t, s, func(context.Context) (string, error) { return "", errors.New("file is gone") }), http.MethodGet, s.URL, "")
	require.ErrorContains(t, err, "file is gone")
	_, err = send(t, client(t, s, func(context.Context) (string, error) { return "", nil }), http.MethodGet, s.URL, "")
	require.ErrorContains(t, err, "empty")
	assert.EqualValues(t, 2, calls.Load(), "nothing is asked without a token")
}

func TestARedirectToAnotherHostGetsNoToken(t *testing.T) {
	var got atomic.Value
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got.Store(r.Header.Get("Authorization")) }))
	defer other.Close()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "Bearer token", r.Header.Get("Authorization"))
		if r.URL.Path == "/elsewhere" {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
			return
		}
		if r.URL.Path == "/renamed" {
			http.Redirect(w, r, "/here", http.StatusMovedPermanently)
		}
	}))
	defer s.Close()
	c := client(t, s, func(context.Context) (string, error) { return "token", nil })
	_, err := send(t, c, http.MethodGet, s.URL+"/renamed", "")
	require.NoError(t, err, "within the forge the token goes along")
	_, err = send(t, c, http.MethodGet, s.URL+"/elsewhere", "")
	require.NoError(t, err)
	assert.Empty(t, got.Load())
}

func TestAnAnswerThatIsTooLargeIsAnError(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		block := make([]byte, 1<<20)
		for range 64 {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}))
	defer s.Close()
	_, err := send(t, client(t, s, func(context.Context) (string, error) { return "token", nil }), http.MethodGet, s.URL, "")
	require.ErrorContains(t, err, "larger than 16 MiB")
}

func TestWhatHasNotChangedIsNotSentAgain(t *testing.T) {
	version, full := 1, 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		etag := fmt.Sprintf(`"v%d"`, version)
		w.Header().Set("ETag", etag)
		w.Header().Set("Link", `<https://forge.test/?page=2>; rel="next"`)
		if r.Header.Get("If-None-Match") == etag {
			w.Header().Del("Link")
			w.WriteHeader(http.StatusNotModified)
			return
		}
		full++
		_, _ = fmt.Fprintf(w, "content %d", version)
	}))
	defer s.Close()
	c := client(t, s, func(context.Context) (string, error) { return "token", nil })
	for range 10 {
		got, err := send(t, c, http.MethodGet, s.URL+"/list", "")
		require.NoError(t, err)
		assert.Equal(t, "content 1", got)
	}
	assert.Equal(t, 1, full)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/list", nil)
	require.NoError(t, err)
	resp, err := c.Do(r)
	require.NoError(t, err)
	_ = resp.Body.Close()
	assert.Equal(t, http.StatusOK, resp.StatusCode)
	assert.Contains(t, resp.Header.Get("Link"), "page=2", "the way to the next page is remembered")
	version = 2
	got, err := send(t, c, http.MethodGet, s.URL+"/list", "")
	require.NoError(t, err)
	assert.Equal(t, "content 2", got)
}
