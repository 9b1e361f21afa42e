package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
)

func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

func TestALimitNamesTheInstantAtWhichToTryAgain(t *testing.T) {
	now := time.Now()
	unix := func(d time.Duration) string { return fmt.Sprint(now.Add(d).Unix()) }
	date := func(d time.Duration) string { return now.Add(d).UTC().Format(http.TimeFormat) }
	for name, c := range map[string]struct {
		status int
		header http.Header
		body   string
		wait   time.Duration
	}{
		"seconds":                              {429, header("Retry-After", "17"), "", 17 * time.Second},
		"a date":                               {429, header("Retry-After", date(90*time.Second), "Date", date(0)), "", 90 * time.Second},
		"GitHub's hour":                        {403, header("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", unix(20*time.Minute)), "", 20 * time.Minute},
		"GitHub's hour, our clock is behind":   {403, header("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", unix(30*time.Minute), "Date", date(10*time.Minute)), "", 20 * time.Minute},
		"GitHub's short-term limit":            {403, header("Retry-After", "60"), "", time.Minute},
		"the same in words only":               {403, header("X-RateLimit-Remaining", "42", "X-RateLimit-Reset", unix(20*time.Minute)), `{"message":"You have exceeded a secondary rate limit."}`, time.Minute},
		"GitLab's":                             {429, header("RateLimit-Remaining", "0", "RateLimit-Reset", unix(40*time.Second)), "", 40 * time.Second},
		"no instant":                           {429, nil, "", time.Minute},
		"one in the past":                      {429, header("Retry-After", "-5"), "", time.Second},
		"a year, which nobody means":           {429, header("Retry-After", "31536000"), "", longestWait},
		"a reset while there are calls left":   {429, header("X-RateLimit-Remaining", "7", "X-RateLimit-Reset", unix(time.Hour)), "", time.Minute},
		"nonsense in the header is no instant": {429, header("Retry-After", "soon"), "", time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			if c.header == nil {
				c.header = http.Header{}
			}
			err := Op{What: "list"}.Fail(fmt.Errorf("wrapped: %w", &Answer{Status: c.status, Header: c.header, Body: []byte(c.body)}))
			var limited *forge.Limited
			require.ErrorAs(t, err, &limited)
			assert.WithinDuration(t, now.Add(c.wait), limited.Until, 3*time.Second)
		})
	}
}

func TestARefusalSaysHowToMendIt(t *testing.T) {
	op := Op{What: "set a status of acme/app", Needs: "commit statuses write"}
	for status, want := range map[int]string{
		401: "expired or was revoked",
		403: "needs commit statuses write",
		404: "may not see it",
		409: "read it again",
		422: `does not take this (the forge says "no; bad field")`,
	} {
		err := op.Fail(&Answer{Status: status, Header: http.Header{}, Body: []byte(`{"message":"no","errors":"bad field"}`)})
		var refused *forge.Refused
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, status, refused.Status)
		assert.Contains(t, err.Error(), want)
		assert.Contains(t, err.Error(), op.What)
	}
	err := op.Fail(&Answer{Status: 403, Header: header("X-Accepted-GitHub-Permissions", "statuses=write", "X-GitHub-SSO", "required; url=x")})
	assert.ErrorContains(t, err, "(statuses=write)")
	assert.ErrorContains(t, err, "single sign-on")
}

func TestWhatIsWorthAnotherTryIsNeitherRefusedNorLimited(t *testing.T) {
	for _, err := range []error{
		&Answer{Status: 500}, &Answer{Status: 502}, &Answer{Status: 503}, &Answer{Status: 408},
		context.DeadlineExceeded, errors.New("connection reset"),
	} {
		got := Op{What: "list"}.Fail(err)
		var refused *forge.Refused
		var limited *forge.Limited
		assert.NotErrorAs(t, got, &refused)
		assert.NotErrorAs(t, got, &limited)
		assert.ErrorIs(t, got, err)
	}
	assert.NoError(t, Op{}.Fail(nil))
}

func TestTheMessageOfAForgeIsOneBoundedLine(t *testing.T) {
	for body, want := range map[string]string{
		`{"message":"Not Found"}`:                 "Not Found",
		`{"message":{"base":["is taken"]}}`:       `{"base":["is taken"]}`,
		`{"error":"invalid_token"}`:               "invalid_token",
		"<html>\n\x1b[31mBad\tGateway\x00</html>": "<html> [31mBad Gateway </html>",
		``: "",
		`{"message":"` + strings.Repeat("x", 1<<10) + `"}`:   strings.Repeat("x", 300) + "…",
		`{"message":null,"errors":[{"message":"too long"}]}`: `[{"message":"too long"}]`,
	} {
		assert.Equal(t, want, (&Answer{Body: []byte(body)}).Message(), body)
	}
}

func TestAListThatDoesNotEndIsAnError(t *testing.T) {
	calls := 0
	_, err := Pages(func(page int) ([]int, int, error) { calls++; return []int{page}, page + 1, nil })
	require.ErrorContains(t, err, "does not end")
	assert.Equal(t, mostPages, calls)
	_, err = Pages(func(page int) ([]int, int, error) { return nil, page, nil })
	require.Error(t, err, "the same page again")
	all, err := Pages(func(page int) ([]int, int, error) { return []int{page}, (page + 1) % 4, nil })
	require.NoError(t, err)
	assert.Equal(t, []int{1, 2, 3}, all)
}
