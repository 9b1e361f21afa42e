package reconciler

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
)

// Whatever is wrong with a request, the answer is one JSON object whose error says in
// plain words what it is and what would be taken.
func TestTheDoorsErrorsHaveOneForm(t *testing.T) {
	w := newStage(t)
	w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat")})
	w.begin()
	w.until("serves", 20*time.Minute, func() bool { return w.stack("models", "prod").Phase == InStep })
	w.r.getenv = func(string) string { return "geheim" }
	w.r.config.HTTP.Keys = []KeyConfig{{Name: "root", Secret: Secret{Env: "KEY"}, Role: forge.Admin}}
	door := w.r.Handler()
	suspend, history := "/v1/stacks/models/prod/suspend", "/v1/history"
	for _, wrong := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"GET", "/nosuch", "", 404, `there is nothing at "/nosuch"`},
		{"GET", "/v1/nosuch", "", 404, "/v1"},
		{"POST", "/v1/stacks/models/prod", "", 404, "there is nothing at"},
		{"DELETE", "/v1/status", "", 405, `"/v1/status" takes GET, and not DELETE`},
		{"PUT", suspend, "", 405, "takes POST"},
		{"GET", "/hooks/models", "", 405, "takes POST"},
		{"POST", "/healthz", "", 405, "takes GET"},
		{"POST", "/hooks/models", "", 404, "no webhook of this name"},
		{"POST", suspend, "oncall", 400, "the body is not JSON, from byte 1 on"},
		{"POST", suspend, `{"reason": "a"`, 400, "ends before its JSON does"},
		{"POST", suspend, `{"reasons": "a"}`, 400, `"reasons" is no field of the body; did you mean "reason"?`},
		{"POST", suspend, `{"whatever": "a"}`, 400, "there are: reason, selector, digest, rule"},
		{"POST", suspend, `{"reason": 3}`, 400, "reason of the body is a number, and must be a text"},
		{"POST", suspend, `["a"]`, 400, "the body is a JSON array, and an object is asked for"},
		{"POST", suspend, `{"reason": "a"} {}`, 400, "more behind"},
		{"POST", suspend, `{"reason": "` + strings.Repeat("a", mostBody) + `"}`, 400, "longer than 65536 bytes"},
		{"GET", history + "?repo=models", "", 400, `"repo" is no parameter of this call; there are: repository, stack`},
		{"GET", history + "?limit=1&limit=2", "", 400, "limit is given 2 times"},
		{"GET", history + "?limit=%zz", "", 400, "the query of the address cannot be read"},
		{"GET", history + "?limit=no", "", 400, "want a whole number"},
		{"GET", history + "?kind=rollout.prked", "", 404, `did you mean "rollout.parked"?`},
		{"GET", history + "?repository=nosuch", "", 404, "there are: models"},
		{"GET", "/v1/status?stack=prod", "", 400, `"stack" is no parameter: this call takes none`},
		{"POST", suspend + "?reason=a", "", 400, "takes none"},
	} {
		req := httptest.NewRequest(wrong.method, wrong.path, strings.NewReader(wrong.body))
		req.Header.Set("Authorization", "Bearer geheim")
		rec := httptest.NewRecorder()
		door.ServeHTTP(rec, req)
		require.Equal(t, wrong.status, rec.Code, "%s %s: %s", wrong.method, wrong.path, rec.Body)
		require.Equal(t, "application/json", rec.Header().Get("Content-Type"), wrong.path)
		var answer map[string]string
		require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &answer), "%s %s: %s", wrong.method, wrong.path, rec.Body)
		require.Len(t, answer, 1)
		require.Contains(t, answer["error"], wrong.says, "%s %s", wrong.method, wrong.path)
		if wrong.status == http.StatusMethodNotAllowed {
			require.Contains(t, answer["error"], "takes "+rec.Header().Get("Allow"))
		}
	}
	for _, fine := range []string{history + "?repository=models&stack=prod&limit=5", history + "?kind=rollout.parked", "/v1/status", "/healthz", "/readyz", "/metrics"} {
		req := httptest.NewRequest(http.MethodGet, fine, nil)
		req.Header.Set("Authorization", "Bearer geheim")
		rec := httptest.NewRecorder()
		door.ServeHTTP(rec, req)
		require.Equal(t, http.StatusOK, rec.Code, "%s: %s", fine, rec.Body)
	}
}
