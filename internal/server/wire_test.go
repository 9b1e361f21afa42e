package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheSameTreeAtEveryPrefix(t *testing.T) {
	d := newDoor(t)
	ep, source, _ := d.endpoint("chat")
	for _, prefix := range []string{"", "/v1", "/v2"} {
		for _, path := range []string{
			"/whoami", "/projects/proj_a/endpoints", "/projects/proj_a/endpoints/" + ep, "/projects/proj_a/endpoints/" + ep + "/deployments",
			"/projects/proj_a/endpoints/" + ep + "/deployments/" + source, "/projects/proj_a/endpoints/" + ep + "/rollouts",
			"/projects/proj_a/endpoints/" + ep + "/events", "/projects/proj_a/endpoints/" + ep + "/analytics",
			"/projects/proj_a/endpoints/" + ep + "/abExperiments", "/projects/proj_a/endpoints/" + ep + "/shadowExperiments",
			"/organizations/org_a/endpoints", "/public/inference-instance-types", "/public/inference-instance-types/1xgpu",
			"/projects/proj_a/configs", "/projects/proj_a/configs/cr_a", "/projects/proj_a/placement-profiles", "/sluice/keys",
		} {
			a := d.call("GET", prefix+path, "").ok()
			require.Equal(t, "application/json", a.Header.Get("Content-Type"))
			if !strings.HasSuffix(path, "/analytics") { // which tells its time range
				require.Equal(t, d.call("GET", path, "").ok().json(), a.json())
			}
		}
		for _, open := range []string{"/healthz", "/readyz", "/metrics"} {
			d.as("", "GET", prefix+open, "").ok()
		}
		d.call("GET", prefix+"/nowhere", "").refused(404, "NOT_FOUND", "no route GET")
		d.call("PUT", prefix+"/whoami", "").refused(404, "NOT_FOUND", "no route PUT")
	}
}

func TestWhoMay(t *testing.T) {
	d := newDoor(t)
	ep, _, _ := d.endpoint("chat")
	for name, header := range map[string]string{"none": "", "empty": "Bearer ", "another scheme": "Basic abc", "wrong": "Bearer sluice_wrong", "only the word": "Bearer"} {
		a := d.as("", "GET", "/v2/whoami", "", "Authorization", header)
		a.refused(401, "UNAUTHENTICATED")
		require.NotEmpty(t, a.Header.Get("WWW-Authenticate"), name)
	}
	d.as(d.reader, "GET", base+"/"+ep, "").ok()
	d.as(d.reader, "POST", base, `{"name":"x"}`).refused(403, "PERMISSION_DENIED", "operate")
	d.as(d.reader, "DELETE", base+"/"+ep, "").refused(403, "PERMISSION_DENIED")
	d.as(d.writer, "GET", "/sluice/keys", "").refused(403, "PERMISSION_DENIED", "admin")
	d.as(d.writer, "POST", base, `{"name":"x"}`).ok()
	made := d.call("POST", "/sluice/keys", `{"name":"ci","scopes":["read"]}`).ok()
	secret := made.text("secret")
	d.as(secret, "GET", "/whoami", "").ok()
	list := d.call("GET", "/sluice/keys", "").ok().Raw
	require.NotContains(t, list, secret, "a secret is told once")
	d.call("DELETE", "/sluice/keys/"+made.text("id"), "").ok()
	d.as(secret, "GET", "/whoami", "").refused(401, "UNAUTHENTICATED", "revoked")
	d.call("POST", "/sluice/keys", `{"name":"ci","scopes":["root"]}`).refused(400, "INVALID_ARGUMENT", "root")
}

func TestOneAnswerForWhatIsNotThere(t *testing.T) {
	d := newDoor(t)
	ep, source, _ := d.endpoint("chat")
	other, otherSource, _ := d.endpoint("other")
	missing := func(path, what string) {
		t.Helper()
		a := d.call("GET", path, "")
		a.refused(404, "NOT_FOUND", what)
	}
	missing(base+"/ep_none", "endpoint ep_none not found")
	missing(strings.Replace(base, "proj_a", "proj_b", 1)+"/"+ep, "project proj_b not found")
	missing(base+"/"+ep+"/deployments/dep_none", "deployment dep_none not found")
	missing(base+"/"+ep+"/deployments/"+otherSource, "deployment "+otherSource+" not found")
	missing(base+"/"+other+"/deployments/"+source, "deployment "+source+" not found")
	missing(base+"/"+ep+"/rollouts/rol_none", "rollout rol_none not found")
	missing("/organizations/org_b/endpoints", "org_b")
	missing("/public/inference-instance-types/none", "none")
	missing("/v2/projects/proj_a/configs/none", "none")
	// Ids that try to climb stay ids, or no route at all.
	for _, id := range []string{"..%2F..%2Fwhoami", "%2e%2e", "a%2Fb", "%00", "ep_%22%3B--", strings.Repeat("x", 5000)} {
		a := d.call("GET", base+"/"+id, "")
		require.Equal(t, 404, a.Status, id)
		a.refused(404, "NOT_FOUND")
	}
	d.call("GET", "/v2//whoami", "").ok() // a slash too many in a base address
	d.as("", "GET", "/v2//whoami", "").refused(401, "UNAUTHENTICATED")
	d.call("POST", "/v2/projects//endpoints", `{}`).refused(404, "NOT_FOUND")
}

func TestBodies(t *testing.T) {
	d := newDoor(t)
	ep, source, target := d.endpoint("chat")
	rollouts := base + "/" + ep + "/rollouts"
	sides := `"sourceDeploymentId":"` + source + `","targetDeploymentId":"` + target + `"`
	for name, c := range map[string]struct {
		body, says string
		param      any
	}{
		"an unknown field":         {`{` + sides + `,"canary":{},"metrisc":[]}`, "metrisc", "metrisc"},
		"an unknown field below":   {`{` + sides + `,"canary":{"stepz":[]}}`, "stepz", "stepz"},
		"10m":                      {`{` + sides + `,"canary":{"stepInterval":"10m"}}`, `"10m" is not a duration`, nil},
		"a bare number":            {`{` + sides + `,"canary":{"stepInterval":600}}`, "600 is not a duration", nil},
		"a fraction of a percent":  {`{` + sides + `,"canary":{"steps":[{"traffic":12.5},{"traffic":100}]}}`, "canary.steps.traffic", "canary.steps.traffic"},
		"a short enum":             {`{` + sides + `,"canary":{},"metrics":[{"name":"router_latency","stat":"AVG","thresholdCheck":{"operator":"LT","value":5}}]}`, "METRIC_STAT_TYPE_AVG", "metrics[0].stat"},
		"an unknown metric":        {`{` + sides + `,"canary":{},"metrics":[{"name":"router_latancy","thresholdCheck":{"operator":"THRESHOLD_OPERATOR_LT","value":5}}]}`, "router_latency", "metrics[0].name"},
		"two strategies":           {`{` + sides + `,"canary":{},"rolling":{}}`, "exactly one", "strategy"},
		"none":                     {`{` + sides + `}`, "exactly one", "strategy"},
		"nothing":                  {``, "no target deployment", nil},
		"an array":                 {`[]`, "cannot be of JSON type array", nil},
		"text":                     {`"x"`, "cannot be of JSON type string", nil},
		"half":                     {`{"canary":`, "ends too early", nil},
		"two values":               {`{"canary":{}} {}`, "more than one", nil},
		"deep":                     {strings.Repeat(`{"canary":`, 20000), "exceeded max depth", nil},
		"a ladder that falls":      {`{` + sides + `,"canary":{"steps":[{"traffic":50},{"traffic":10},{"traffic":100}]}}`, "climbs", "canary.steps[1].traffic"},
		"not a number":             {`{` + sides + `,"canary":{},"metrics":[{"name":"router_error_rate","thresholdCheck":{"operator":"THRESHOLD_OPERATOR_LT","value":1e999}}]}`, "value", nil},
		"metrics on a rolling one": {`{` + sides + `,"rolling":{},"metrics":[{"name":"router_error_rate","thresholdCheck":{"operator":"THRESHOLD_OPERATOR_LT","value":0.5}}]}`, "canary", "metrics"},
	} {
		for _, path := range []string{"", "/preview-defaults"} {
			a := d.call("POST", rollouts+path, c.body)
			require.Equal(t, 400, a.Status, "%s: %s", name, a.Raw)
			a.refused(400, "INVALID_ARGUMENT", c.says)
			if c.param != nil {
				require.Equal(t, c.param, a.param(), name)
			}
		}
	}
	d.call("POST", base, `{"name":"`+strings.Repeat("x", 1<<20)+`"}`).refused(413, "TOO_LARGE")
	d.call("POST", base, `{"name":"a b"}`).refused(400, "INVALID_ARGUMENT", "not valid")
	d.call("POST", base, `{"name":"another/chat"}`).refused(400, "INVALID_ARGUMENT", "another")
	d.call("POST", base, `{"name":"demo/chat"}`).refused(409, "ALREADY_EXISTS", "chat")
	d.call("POST", base, `{"name":"ok","visibility":"PRIVATE"}`).refused(400, "INVALID_ARGUMENT", "VISIBILITY_PRIVATE")
	list := d.call("GET", rollouts, "").ok().json()
	require.Empty(t, list["data"], "none of these made one")
}

// A client that stops in the middle of its body gets no more than its own
// connection.
func TestASlowClientHoldsNobodyUp(t *testing.T) {
	d := newDoor(t)
	pipeR, pipeW := newPipe()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.url+base, pipeR)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+d.admin)
	done := make(chan answer, 1)
	go func() { done <- d.send(req) }()
	_, err = pipeW.Write([]byte(`{"name":`))
	require.NoError(t, err)
	d.call("GET", "/whoami", "").ok()
	d.endpoint("meanwhile")
	_, err = pipeW.Write([]byte(`"slow"}`))
	require.NoError(t, err)
	require.NoError(t, pipeW.Close())
	(<-done).ok()
}

func TestARolloutOnTheWire(t *testing.T) {
	d := newDoor(t)
	ep, source, target := d.endpoint("chat")
	rollouts := base + "/" + ep + "/rollouts"
	spec := `{"sourceDeploymentId":"` + source + `","targetDeploymentId":"` + target + `","canary":{"steps":[{"traffic":10},{"traffic":100}],"stepInterval":"600s"}}`

	p := d.call("POST", rollouts+"/preview-defaults", spec).ok().json()
	for _, zero := range []string{"targetReplicas", "targetMinReplicas", "targetMaxReplicas"} {
		require.EqualValues(t, 0, p[zero], "zero is real and is sent: %s", zero)
	}
	require.Equal(t, []any{}, p["warnings"])
	require.EqualValues(t, 1, p["landingMinReplicas"])
	require.NotContains(t, p, "estimatedSeedPercent")
	require.NotContains(t, p, "estimatedEffectiveSteps", "the caller gave the steps")

	created := d.as(d.admin, "POST", rollouts, spec, "Idempotency-Key", "k").ok()
	again := d.as(d.admin, "POST", rollouts, spec, "Idempotency-Key", "k").ok()
	require.Equal(t, created.text("id"), again.text("id"))
	d.as(d.admin, "POST", rollouts, `{}`, "Idempotency-Key", "k").refused(400, "INVALID_ARGUMENT")
	d.as(d.admin, "POST", rollouts, strings.Replace(spec, "600s", "601s", 1), "Idempotency-Key", "k").refused(400, "INVALID_ARGUMENT", "idempotency key")
	d.as(d.admin, "POST", rollouts, spec, "Idempotency-Key", strings.Repeat("k", 300)).refused(400, "INVALID_ARGUMENT", "255")
	id := created.text("id")
	r := created.json()
	require.Equal(t, "ROLLOUT_STATE_PENDING", r["state"])
	require.NotContains(t, r, "currentStep", "unset while pending")
	require.NotContains(t, r, "startedAt")
	require.Equal(t, "ROLLOUT_STRATEGY_TYPE_CANARY", r["strategy"])
	status := r["status"].(map[string]any)
	require.EqualValues(t, 2, status["totalSteps"])
	step := status["steps"].([]any)[0].(map[string]any)
	require.EqualValues(t, 0, step["stepIndex"])
	require.NotContains(t, status, "condition")
	require.NotContains(t, status, "conditions")
	require.Equal(t, id, d.call("GET", base+"/"+ep, "").ok().json()["activeRolloutId"])
	listed := d.call("GET", base, "").ok().json()["data"].([]any)[0].(map[string]any)
	require.Equal(t, id, listed["activeRolloutId"], "in lists too")

	for _, f := range []string{"", "?filter=ROLLOUT_FILTER_ACTIVE"} {
		require.Len(t, d.call("GET", rollouts+f, "").ok().json()["data"], 1)
	}
	require.Empty(t, d.call("GET", rollouts+"?filter=ROLLOUT_FILTER_TERMINAL", "").ok().json()["data"])
	d.call("GET", rollouts+"?filter=ACTIVE", "").refused(400, "INVALID_ARGUMENT", "invalid filter expression")
	d.call("POST", rollouts, spec).refused(409, "LOCKED", id, "PENDING")
	d.call("PATCH", base+"/"+ep+"?updateMask=trafficSplit", `{"trafficSplit":[]}`).refused(409, "LOCKED", "cannot update traffic_split while rollout", id)

	// start sends no body and no content type.
	started := d.call("POST", rollouts+"/"+id+"/start", "").ok().json()
	require.Equal(t, "ROLLOUT_STATE_RUNNING", started["state"])
	require.EqualValues(t, 0, started["currentStep"], "an explicit zero")
	require.EqualValues(t, 0, started["currentTrafficPercent"])
	d.call("POST", rollouts+"/"+id+"/start", "{}").ok() // as curl does, and again
	d.call("DELETE", rollouts+"/"+id, "").refused(400, "FAILED_PRECONDITION", "cancel it first")
	d.call("DELETE", base+"/"+ep+"/deployments/"+source, "").refused(409, "LOCKED", "source", id)
	d.call("PATCH", base+"/"+ep+"/deployments/"+target, `{"autoscaling":{"minReplicas":0,"maxReplicas":0}}`).refused(400, "FAILED_PRECONDITION", "target", id)

	d.call("POST", rollouts+"/"+id+"/pause", `{"reason":"lunch","etag":"999"}`).refused(409, "ABORTED", "read it again")
	d.call("POST", rollouts+"/"+id+"/pause", `{"reason":"`+strings.Repeat("x", 2000)+`"}`).refused(400, "INVALID_ARGUMENT", "1024")
	d.call("POST", rollouts+"/"+id+"/pause", `{"reason":"lunch"}`).ok()
	require.Eventually(t, func() bool {
		return d.call("GET", rollouts+"/"+id, "").json()["state"] == "ROLLOUT_STATE_PAUSED"
	}, 10*time.Second, 5*time.Millisecond)
	paused := d.call("GET", rollouts+"/"+id, "").json()
	require.Equal(t, "lunch", paused["pauseInfo"].(map[string]any)["reason"])
	d.call("POST", rollouts+"/"+id+"/pause", `{}`).refused(400, "FAILED_PRECONDITION", "cannot pause", "PAUSED")
	d.call("POST", rollouts+"/"+id+"/cancel", `{}`).refused(400, "INVALID_ARGUMENT", "needs a reason")
	d.call("POST", rollouts+"/"+id+"/cancel", `{"reason":"x","disposition":"CANCEL_DISPOSITION_REVERT"}`).refused(400, "FAILED_PRECONDITION", "freezes")
	d.call("POST", rollouts+"/"+id+"/cancel", `{"reason":"x","disposition":"FREEZE"}`).refused(400, "INVALID_ARGUMENT")
	d.call("POST", rollouts+"/"+id+"/cancel", `{"reason":"x","disposition":"CANCEL_DISPOSITION_FREEZE"}`).ok()
	require.Eventually(t, func() bool {
		return d.call("GET", rollouts+"/"+id, "").json()["state"] == "ROLLOUT_STATE_CANCELED"
	}, 10*time.Second, 5*time.Millisecond)
	over := d.call("GET", rollouts+"/"+id, "").json()
	require.Contains(t, over, "completedAt")
	require.NotContains(t, over, "pauseInfo")
	require.NotContains(t, d.call("GET", base+"/"+ep, "").ok().json(), "activeRolloutId")
	for _, verb := range []string{"pause", "resume", "promote", "start"} {
		d.call("POST", rollouts+"/"+id+"/"+verb, "{}").refused(400, "FAILED_PRECONDITION", "it is over")
	}
	require.Equal(t, "{}\n", d.call("DELETE", rollouts+"/"+id, "").ok().Raw)
	d.call("GET", rollouts+"/"+id, "").refused(404, "NOT_FOUND")
	rows := d.call("GET", base+"/"+ep+"/events?subjectId="+id, "").ok().json()["data"].([]any)
	first := rows[len(rows)-1].(map[string]any)
	require.Equal(t, "rollout.created", first["type"])
	require.Equal(t, "admin", first["sluice"].(map[string]any)["actor"], "who asked")
}

func TestMasks(t *testing.T) {
	d := newDoor(t)
	ep, source, _ := d.endpoint("chat")
	at := base + "/" + ep
	d.call("PATCH", at, `{}`).refused(400, "INVALID_ARGUMENT", "no fields to update")
	d.call("PATCH", at, `{"trafficSplit":[]}`).refused(400, "INVALID_ARGUMENT", "no fields to update")
	d.call("PATCH", at+"?updateMask=trafficSplit,nonsense", `{}`).refused(400, "INVALID_ARGUMENT", "nonsense")
	d.call("PATCH", at+"?updateMask=visibility", `{"visibility":"VISIBILITY_INTERNAL","trafficSplit":[{"deploymentId":"dep_none","weight":1}]}`).ok()
	require.Len(t, d.call("GET", at, "").json()["trafficSplit"], 1, "what the mask does not name stays")
	d.call("PATCH", at+"?updateMask=trafficSplit", `{"trafficSplit":[{"deploymentId":"dep_none","weight":1}]}`).refused(400, "INVALID_ARGUMENT", "dep_none")
	d.call("PATCH", at, `{"trafficSplit":[{"deploymentId":"`+source+`","weight":-1}]}`).refused(400, "INVALID_ARGUMENT", "-1")
	d.call("PATCH", at, `{"trafficSplit":[{"deploymentId":"`+source+`","weight":1},{"deploymentId":"`+source+`","weight":2}]}`).refused(400, "INVALID_ARGUMENT", "twice")
	d.call("PATCH", at, `{"name":"renamed"}`).refused(400, "INVALID_ARGUMENT", "renamed")
	require.Equal(t, []any{}, d.call("PATCH", at+"?updateMask=trafficSplit", `{"trafficSplit":[]}`).ok().json()["trafficSplit"], "empty, and there")
	d.call("PATCH", at, `{"etag":"1","visibility":"VISIBILITY_PRIVATE"}`).refused(409, "ABORTED")

	dep := at + "/deployments/" + source
	scaling := func() map[string]any { return d.call("GET", dep, "").ok().json()["autoscaling"].(map[string]any) }
	d.call("PATCH", dep, `{}`).refused(400, "INVALID_ARGUMENT", "no fields to update")
	d.call("PATCH", dep, `{"autoscaling":{"scaleDownWindow":"300s","scalingMetrics":[{"name":"inflight_requests","target":8,"type":"METRIC_TARGET_TYPE_AVERAGE_VALUE"}]}}`).ok()
	d.call("PATCH", dep, `{"autoscaling":{"scaleUpWindow":"60s"}}`).ok()
	require.Equal(t, "300s", scaling()["scaleDownWindow"], "what was not sent stays")
	require.Len(t, scaling()["scalingMetrics"], 1)
	d.call("PATCH", dep+"?updateMask=autoscaling.minReplicas,autoscaling.maxReplicas", `{"autoscaling":{"minReplicas":2,"maxReplicas":3,"scaleUpWindow":"1s"}}`).ok()
	require.EqualValues(t, 2, scaling()["minReplicas"])
	require.Equal(t, "60s", scaling()["scaleUpWindow"])
	d.call("PATCH", dep+"?updateMask=autoscaling.scaleUpWindow", `{"autoscaling":{}}`).ok()
	require.NotContains(t, scaling(), "scaleUpWindow", "named and absent: cleared")
	d.call("PATCH", dep+"?updateMask=autoscaling.minReplicas", `{}`).refused(400, "INVALID_ARGUMENT", "the body has none")
	d.call("PATCH", dep+"?updateMask=model", `{}`).refused(400, "INVALID_ARGUMENT", "model")
	d.call("PATCH", dep, `{"autoscaling":{"minReplicas":0,"maxReplicas":5}}`).refused(400, "INVALID_ARGUMENT")
	d.call("POST", at+"/deployments?validateOnly=true", `{"name":"dry","model":"m/a","autoscaling":{}}`).ok()
	require.Len(t, d.call("GET", at+"/deployments", "").json()["data"], 2)
}

func TestPagesAreStableAndNeverEmptyWithACursor(t *testing.T) {
	d := newDoor(t)
	for i := range 7 {
		d.call("POST", base, fmt.Sprintf(`{"name":"e%d"}`, i)).ok()
	}
	for _, order := range []string{"", "created_at", "created_at%20desc", "updated_at%20asc"} {
		var names []string
		after := ""
		for pages := 0; ; pages++ {
			require.Less(t, pages, 20)
			p := d.call("GET", base+"?limit=3&filter=name%3Ae&orderBy="+order+"&after="+after, "").ok().json()
			data := p["data"].([]any)
			for _, item := range data {
				names = append(names, strings.TrimPrefix(item.(map[string]any)["name"].(string), "demo/"))
			}
			if pages == 0 && order == "" {
				d.call("POST", base, `{"name":"late"}`).ok()
			}
			if p["next_cursor"] == nil {
				break
			}
			require.NotEmpty(t, data)
			after = p["next_cursor"].(string)
		}
		want := []string{"e0", "e1", "e2", "e3", "e4", "e5", "e6"}
		if order == "" {
			want = []string{"e6", "e5", "e4", "e3", "e2", "e1", "e0"}
		}
		if order == "" || order == "created_at%20desc" {
			require.Equal(t, "e6", without(names, "late")[0])
			require.Len(t, without(names, "late"), 7)
			continue
		}
		require.Equal(t, want, without(names, "late"))
	}
	last := d.call("GET", base+"?limit=8", "").ok().json()
	require.Nil(t, last["next_cursor"], "a full last page has none")
	d.call("GET", base+"?after=nonsense", "").refused(400, "INVALID_ARGUMENT", "cursor")
	d.call("GET", base+"?limit=0", "").refused(400, "INVALID_ARGUMENT", "limit")
	d.call("GET", base+"?limit=x", "").refused(400, "INVALID_ARGUMENT", "limit")
	d.call("GET", base+"?limit=100000", "").ok()
	d.call("GET", base+"?orderBy=name", "").refused(400, "INVALID_ARGUMENT", "name")
	d.call("GET", base+"?orderBy=created_at%20down", "").refused(400, "INVALID_ARGUMENT", "down")
}

func without(names []string, name string) []string {
	var out []string
	for _, n := range names {
		if n != name {
			out = append(out, n)
		}
	}
	return out
}

func TestEventsOverTheWire(t *testing.T) {
	d := newDoor(t)
	ep, source, _ := d.endpoint("chat")
	at := base + "/" + ep + "/events"
	count := func(query string) int {
		t.Helper()
		return len(d.call("GET", at+query, "").ok().json()["data"].([]any))
	}
	require.Equal(t, 3, count("?types=endpoint.created%2Cdeployment.created"))
	require.Equal(t, 3, count("?types=endpoint.created%2C%2C%20deployment.created%2C"), "junk commas")
	require.Equal(t, 3, count("?types=endpoint.created&types=deployment.created"), "repeated, as some clients do")
	require.Equal(t, count(""), count("?types=%2C"), "a lone comma is nothing")
	require.Equal(t, 1, count("?types=deployment.created&deploymentIds="+source))
	require.Equal(t, 2, count("?types=deployment.created%2Cendpoint.created&deploymentIds="+source+"&sourceKinds=SOURCE_KIND_ENDPOINT%2CSOURCE_KIND_DEPLOYMENT"))
	require.Zero(t, count("?until=2020-01-01T00:00:00Z"))
	require.Equal(t, count(""), count("?since=2020-01-01T00:00:00Z&limit=10000"))
	require.Zero(t, count("?minLevel=LEVEL_ERROR"))
	for query, says := range map[string]string{
		"?minLevel=LEVEL_LOUD": "LEVEL_LOUD", "?since=yesterday": "RFC 3339", "?after=bm8": "cursor", "?limit=-1": "limit",
		"?sourceKinds=SOURCE_KIND_MOON": "MOON", "?types=" + strings.Repeat("a%2C", 300): "at most 200",
	} {
		d.call("GET", at+query, "").refused(400, "INVALID_ARGUMENT", says)
	}
	var seen []string
	after := ""
	for {
		p := d.call("GET", at+"?limit=2&after="+after, "").ok().json()
		require.NotEmpty(t, p["data"])
		for _, e := range p["data"].([]any) {
			row := e.(map[string]any)
			seen = append(seen, row["id"].(string))
			for _, need := range []string{"id", "createdAt", "endpointId", "level", "source", "sourceKind", "type"} {
				require.NotEmpty(t, row[need])
			}
		}
		if p["next_cursor"] == nil {
			break
		}
		after = p["next_cursor"].(string)
	}
	require.Len(t, seen, count("?limit=10000"))
}

func TestFilters(t *testing.T) {
	d := newDoor(t)
	ep, _, _ := d.endpoint("chat")
	d.call("POST", base, `{"name":"batch","visibility":"VISIBILITY_INTERNAL"}`).ok()
	for expression, want := range map[string]int{
		`name = "chat"`: 1, `name=chat`: 1, `name != "chat"`: 1, `name : "a"`: 2, `name = "*at"`: 1, `name = "ch*"`: 1, `name = "*at*"`: 2, `name = "*"`: 2,
		`name = "chat" OR name = "batch"`: 2, `name = "chat" AND visibility = "VISIBILITY_INTERNAL"`: 0, `NOT name = "chat"`: 1,
		`NOT (name = "chat" OR name = "batch")`: 0, `created_at > "2020-01-01T00:00:00Z"`: 2, `created_at < "2020-01-01T00:00:00Z"`: 0, `name = "é"`: 0, `name = é`: 0,
	} {
		a := d.call("GET", base+"?filter="+escape(expression), "").ok()
		require.Len(t, a.json()["data"], want, expression)
	}
	for expression, says := range map[string]string{
		`name`: "missing", `name = "x`: "quote", `colour = "x"`: "unknown field", `name ~ "x"`: "operator", `name = "x" name = "y"`: "not expected",
		`(name = "x"`: "parenthesis", strings.Repeat("(", 100): "deeply", strings.Repeat("NOT ", 100): "deeply", `created_at > "yesterday"`: "RFC 3339",
		strings.Repeat(`name = "x" AND `, 1000): "at most",
	} {
		d.call("GET", base+"?filter="+escape(expression), "").refused(400, "INVALID_ARGUMENT", "invalid filter expression", says)
	}
	deployments := base + "/" + ep + "/deployments"
	for expression, want := range map[string]int{
		`state = "DEPLOYMENT_STATE_STOPPED"`: 1, `model = "projects/proj_a/models/m/b"`: 1, `model = "projects/proj_a/models/m/b/revisions/rv_9"`: 1, `model = "m/a"`: 1,
	} {
		require.Len(t, d.call("GET", deployments+"?filter="+escape(expression), "").ok().json()["data"], want, expression)
	}
	require.Len(t, d.call("GET", "/organizations/org_a/endpoints", "").ok().json()["data"], 1)
	require.Empty(t, d.call("GET", "/organizations/org_a/endpoints?filter="+escape(`name = "chat"`), "").ok().json()["data"])
}

func TestAnalyticsTellWhatTheyReach(t *testing.T) {
	d := newDoor(t)
	ep, source, _ := d.endpoint("chat")
	at := base + "/" + ep + "/analytics"
	a := d.call("GET", at+"?deploymentId="+source, "").ok().json()
	require.Len(t, a["deploymentAnalytics"], 1)
	require.Equal(t, "0", a["metrics"].(map[string]any)["requestMetrics"].(map[string]any)["totalRequests"], "counts are strings")
	d.call("GET", at+"?deploymentId=dep_none", "").refused(404, "NOT_FOUND")
	d.call("GET", at+"?includeTimeSeries=true", "").refused(400, "INVALID_ARGUMENT", "/metrics")
	d.call("GET", at+"?endTime=2020-01-01T00:00:00Z", "").refused(400, "INVALID_ARGUMENT", "remembers")
	d.call("GET", at+"?startTime=x", "").refused(400, "INVALID_ARGUMENT", "RFC 3339")
}

// The eleventh deployment is in the list, and the newest ten are in the endpoint.
func TestAnEndpointEmbedsTheTenNewest(t *testing.T) {
	d := newDoor(t)
	ep, _, _ := d.endpoint("chat")
	for i := range 10 {
		d.call("POST", base+"/"+ep+"/deployments", fmt.Sprintf(`{"name":"d%d","model":"m/a","autoscaling":{"minReplicas":0}}`, i)).ok()
	}
	got := d.call("GET", base+"/"+ep, "").ok().json()
	require.Len(t, got["deployments"], 10)
	require.Equal(t, "demo/chat/d9", got["deployments"].([]any)[0].(map[string]any)["name"])
	require.Len(t, d.call("GET", base+"/"+ep+"/deployments", "").json()["data"], 12)
}

func TestTheStoreIsGone(t *testing.T) {
	d := newDoor(t)
	require.NoError(t, d.disk.Close())
	d.as("", "GET", "/healthz", "").ok()
	a := d.as("", "GET", "/readyz", "")
	a.refused(503, "UNAVAILABLE")
	require.Equal(t, "1", a.Header.Get("Retry-After"))
	d.call("GET", "/whoami", "").refused(500, "INTERNAL")
	var body struct{ Message string }
	require.NoError(t, json.Unmarshal([]byte(a.Raw), &body))
}
