package testacc

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource/gittest"
)

// A configuration is read and nothing is done: what is wrong is told with its line and a hint.
func TestReconcileChecksItsConfiguration(t *testing.T) {
	t.Parallel()
	w := follow(t, fastEngine)
	out, errs, code := w.run("reconcile", "--config", "sluice.hcl", "--check")
	require.Zero(t, code, errs)
	require.Equal(t, "sluice.hcl: nothing is wrong; 1 repository, 1 stack\n", out)

	w.write("bad.hcl", "engine {\n  url          = \"http://127.0.0.1:1\"\n  api_kye_file = \"engine\"\n}\n\nrepository \"models\" {\n  url      = \"/srv/models\"\n  interval = \"1s\"\n}\n")
	out, errs, code = w.run("reconcile", "--config", "bad.hcl", "--check")
	require.Equal(t, 1, code)
	require.Empty(t, out)
	for _, text := range []string{"bad.hcl:3:3", `did you mean "api_key_file"?`, "bad.hcl:6:1", "has no stack", "bad.hcl:7:14", "is a local path", "bad.hcl:8:14", "write at least 5s"} {
		require.Contains(t, errs, text)
	}
	_, errs, code = w.run("reconcile", "--config", "none.hcl", "--check")
	require.Equal(t, 1, code)
	require.Contains(t, errs, "Cannot read the configuration none.hcl")
	require.Zero(t, w.server.Calls(gittest.Refs), "nothing was asked")
}

// The exit codes of a single pass, each reached for real: what a pipeline sees of a
// declaration that is applied, of one that cannot be read, of a rollout and of its park.
func TestReconcileOnceTellsAPipelineWhatBecameOfIt(t *testing.T) {
	t.Parallel()
	w := follow(t, strings.Replace(fastEngine, "default_window: 1s", "default_window: 4s", 1))
	traffic := w.probed(60)
	pass := func(words ...string) (string, string, int) {
		t.Helper()
		return w.run(append([]string{"reconcile", "--config", w.config, "--once"}, words...)...)
	}
	out, errs, code := pass("--wait", "--within", "40s")
	require.Zero(t, code, "%s%s", out, errs)
	require.Contains(t, out, "✓ prod  in step")
	out, errs, code = pass()
	require.Zero(t, code, "nothing to do: %s%s", out, errs)

	w.repo.Commit("main", map[string]string{"prod/broken.tf": "resource \"sluice_endpoint\" \"chat\" {\n"})
	out, errs, code = pass()
	require.Equal(t, 1, code, "%s%s", out, errs)
	require.Contains(t, out, "✗ prod  invalid")
	w.repo.Make(gittest.Spec{Branch: "main", Remove: []string{"prod/broken.tf"}})
	_, _, code = pass()
	require.Zero(t, code)

	w.repo.Commit("main", gitHouse(gitCanary("cr_slow", "4s", 10, 100)))
	out, errs, code = pass()
	require.Equal(t, 2, code, "%s%s", out, errs)
	require.Contains(t, out, "● prod  rolling out")
	require.Len(t, w.rollouts(), 1)
	out, errs, code = pass("--wait", "--within", "40s")
	require.Equal(t, 3, code, "%s%s", out, errs)
	require.Contains(t, out, "‖ prod  parked")
	require.Contains(t, out, "METRIC_REGRESSION")
	_, _, code = pass()
	require.Equal(t, 3, code, "still parked")
	require.Len(t, w.rollouts(), 1)

	_, errs, code = w.run("reconcile", "--once")
	require.Equal(t, 1, code, "2 would mean that changes wait")
	require.Contains(t, errs, "say what to follow")
	w.secret("git", "another password")
	_, errs, code = pass()
	require.Equal(t, 1, code, errs)
	require.NotContains(t, errs, "another password")
	require.Zero(t, traffic().Non200())
}

// One repository is followed by flags alone, over HTTP with a token and over SSH with a
// pinned host key.
func TestReconcileOneRepositoryByFlags(t *testing.T) {
	t.Parallel()
	w := follow(t, fastEngine)
	server := gittest.New(t, gittest.Options{User: "x-access-token", Password: "a-token"})
	repo := server.Repository("acme/flags")
	repo.Commit("main", gitHouse())
	w.env = append(w.env, "SLUICE_ENGINE_URL="+w.engine.APIURL, "SLUICE_API_KEY="+w.engine.Key, "GIT_TOKEN=a-token")
	out, errs, code := w.run("reconcile", "--once", "--wait", "--within", "40s", "--repository", repo.URL(), "--branch", "main", "--folder", "prod", "--state", "flags.db", "--token-env", "GIT_TOKEN")
	require.Zero(t, code, "%s%s", out, errs)
	require.Contains(t, out, "in step")

	w.overSSH()
	text, err := os.ReadFile(w.config)
	require.NoError(t, err)
	_, address, _ := strings.Cut(string(text), `"ssh://`)
	address, _, _ = strings.Cut(address, `"`)
	flags := []string{"reconcile", "--once", "--repository", "ssh://" + address, "--folder", "prod", "--state", "flags2.db", "--ssh-key", "ssh"}
	_, errs, code = w.run(flags...)
	require.Equal(t, 1, code)
	require.Contains(t, errs, "no pinned host keys")
	out, errs, code = w.run(append(flags, "--known-hosts", "known_hosts")...)
	require.Equal(t, 2, code, "another journal is another owner: %s%s", out, errs)
	require.Contains(t, out, "belongs to reconciler-")
	require.Contains(t, out, "sluice reconcile release chat")
	require.Empty(t, w.rollouts())
}

// The commands that a person has for a reconciler that runs, with keys that may and keys
// that may not.
func TestReconcileCommandsAtTheDoor(t *testing.T) {
	t.Parallel()
	w := follow(t, fastEngine, `branch   = "main"`, "branch   = \"main\"\n  approval = \"digest\"")
	d := &door{t: t, p: w.start(), w: w}
	d.waitsFor("waiting")
	d.refuses("no-such-key", "(401): the key is not known", "status")
	d.refuses("wall", "(403): key wall may not suspend: it takes a key with role maintain or more", "suspend", "models/prod")
	d.refuses("ann", "(403): key ann may not approve: it takes a key with role maintain or more", "approve", "models/prod", "0123456789ab")
	d.refuses("olga", "0123456789ab is not the plan that waits: that is "+d.digest(), "approve", "models/prod", "0123456789ab")
	d.refuses("olga", "at least 12 hex digits", "approve", "models/prod", "01")
	d.refuses("wall", `no stack is named "models/prd"; there are: models/prod`, "diff", "models/prd")
	d.refuses("wall", `no repository is named "modles"; there are: models`, "now", "modles")
	require.Contains(t, d.says("wall", "status"), "needs an approval, since the repository asks for it. Approve it: /sluice approve "+d.digest())
	require.Contains(t, d.says("wall", "diff", "models/prod"), "2 created, 0 replaced, 0 destroyed  (plan digest "+d.digest()+")")
	require.Equal(t, "no drift\n", d.says("wall", "drift", "models/prod"))

	require.Contains(t, d.says("olga", "approve", "models/prod", d.digest()), "is approved")
	d.waitsFor("in step")
	require.Contains(t, d.says("olga", "suspend", "models/prod", "--reason", "a long weekend"), "suspended: nothing is started")
	require.Contains(t, d.says("wall", "status"), "suspended by olga: a long weekend")
	w.repo.Commit("main", gitHouse(gitCanary("cr_good", "1s", 10, 100)))
	require.Equal(t, "the next pass over models comes at once\n", d.says("wall", "now", "models"))
	d.waitsFor("waiting")
	require.Contains(t, d.says("olga", "approve", "models/prod", d.digest()), "is approved")
	require.Contains(t, d.says("wall", "status"), "suspended by olga")
	require.Empty(t, w.rollouts(), "suspended")
	require.Equal(t, "the suspension is over\n", d.says("olga", "resume", "models/prod"))
	d.waitsFor("rolling out", "in step")
	d.waitsFor("in step")
	require.Contains(t, d.says("olga", "reverse", "models/prod", "--reason", "answers are worse"), "takes ")
	d.waitsFor("ahead of Git")
	require.Equal(t, []string{"COMPLETED", "COMPLETED"}, w.states())
	d.isAllowedAgain()
	history := d.says("wall", "history", "models", "--stack", "prod", "--limit", "100")
	for _, text := range []string{"suspend asked by olga (http), since: a long weekend", "continue asked by olga (http)", "reverse asked by olga (http), since: answers are worse", "retry asked by olga (http)", "is taken up"} {
		require.Contains(t, history, text)
	}
}

// door is a person at a reconciler's door.
type door struct {
	t *testing.T
	p *follower
	w *followed
}

// says is what a command prints, whose key may.
func (d *door) says(who string, words ...string) string {
	d.t.Helper()
	out, errs, code := d.p.ask(doorKeys[who], words...)
	require.Zero(d.t, code, "%v: %s", words, errs)
	return out
}

// refuses is a command that ends with 1 and says why.
func (d *door) refuses(who, why string, words ...string) {
	d.t.Helper()
	key := doorKeys[who]
	if key == "" {
		key = who
	}
	out, errs, code := d.p.ask(key, words...)
	require.Equal(d.t, 1, code, "%v: %s%s", words, out, errs)
	require.Contains(d.t, errs, why)
}

// waitsFor waits until the stack is in one of some phases.
func (d *door) waitsFor(phases ...string) {
	d.t.Helper()
	var last stackStatus
	require.True(d.t, assertSoon(soon, func() bool {
		last = d.p.stack()
		for _, phase := range phases {
			if last.Phase == phase {
				return true
			}
		}
		return false
	}), "%v: it is %+v", phases, last)
}

// digest is that of the plan that stands, as people write it.
func (d *door) digest() string { return planning.ShortDigest(d.p.stack().Plan) }

// isAllowedAgain: what a person has taken back starts again only when one says so and its
// plan, which is another one by now, is approved.
func (d *door) isAllowedAgain() {
	d.t.Helper()
	require.Contains(d.t, d.says("wall", "status"), "is not started again by itself. Change it in Git, or allow it: /sluice retry sluice_rollout.next")
	require.Equal(d.t, "sluice_rollout.next may start again\n", d.says("olga", "retry", "models/prod", "--reason", "the model is mended"))
	d.waitsFor("waiting")
	d.says("olga", "approve", "models/prod", d.digest())
	d.waitsFor("rolling out", "in step")
	d.waitsFor("in step")
	require.Equal(d.t, []string{"COMPLETED", "COMPLETED", "COMPLETED"}, d.w.states())
}

// E7: SIGTERM between the create and the start of a rollout. The process ends in order and
// gives its lease back; the next one begins at once and starts that same rollout.
func TestReconcileSIGTERMBetweenCreateAndStart(t *testing.T) {
	t.Parallel()
	w := follow(t, fastEngine)
	target, err := url.Parse(w.engine.APIURL)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	reached, once := make(chan struct{}), sync.Once{}
	address := w.between(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/start") {
			proxy.ServeHTTP(rw, r)
			return
		}
		once.Do(func() { close(reached) })
		<-r.Context().Done() // the caller gives up: the engine never hears of it
	})
	w.replace(w.engine.APIURL, address)
	p := w.start()
	require.True(t, assertSoon(soon, func() bool { return p.stack().Phase == "in step" }))
	w.repo.Commit("main", gitHouse(gitCanary("cr_good", "1s", 10, 100)))
	select {
	case <-reached:
	case <-time.After(soon):
		t.Fatal("nothing was started")
	}
	require.Equal(t, []string{"PENDING"}, w.states())
	require.Less(t, p.end(syscall.SIGTERM), 10*time.Second)
	require.Zero(t, p.cmd.ProcessState.ExitCode(), p.said)
	require.Equal(t, []string{"PENDING"}, w.states())

	w.replace(address, w.engine.APIURL)
	began := time.Now()
	next := w.start()
	require.True(t, assertSoon(10*time.Second, func() bool { return w.states()[0] != "PENDING" }), "%s", next.said)
	t.Logf("the next process started the rollout %s after its own start", time.Since(began).Round(time.Millisecond))
	require.True(t, assertSoon(soon, func() bool { return w.states()[0] == "COMPLETED" }), "%v", w.states())
	require.True(t, assertSoon(soon, func() bool {
		s := next.stack()
		return s.Phase == "in step" && len(s.Rollouts) == 1 && s.Rollouts[0].State == "COMPLETED"
	}), "%+v", next.stack())
	require.Len(t, w.states(), 1)
}

// E5: kill -9 in the middle of a rollout, while another process stands by. That one takes
// over when the lease has run out, goes on with the same rollout and tells the truth.
func TestReconcileAStandbyTakesOverAfterAKill(t *testing.T) {
	t.Parallel()
	w := follow(t, fastEngine)
	first := w.start()
	require.True(t, assertSoon(soon, func() bool { return first.stack().Phase == "in step" }))
	second := w.start()
	require.True(t, assertSoon(soon, func() bool { return strings.Contains(second.said.String(), "standing by") }))
	out, _, _ := second.ask(doorKeys["wall"], "status")
	require.Contains(t, out, fmt.Sprintf("standing by: process %d on ", first.cmd.Process.Pid))
	_, errs, code := second.ask(doorKeys["olga"], "suspend", "models/prod", "--reason", "x")
	require.Equal(t, 1, code)
	require.Contains(t, errs, "this process is standing by: another reconciler writes here")

	w.repo.Commit("main", gitHouse(gitCanary("cr_good", "45s", 50, 100)))
	require.True(t, assertSoon(soon, func() bool { return first.stack().Phase == "rolling out" }))
	require.NoError(t, first.cmd.Process.Kill())
	<-first.ended
	killed := time.Now()
	require.Len(t, w.rollouts(), 1)
	require.True(t, assertSoon(time.Minute, func() bool { return w.holds(second) }), "%s", second.said)
	t.Logf("the second process writes %s after the kill of the first", time.Since(killed).Round(time.Second))
	require.True(t, assertSoon(10*time.Second, func() bool { return second.stack().Phase == "rolling out" }), "the status is true within one poll: %+v", second.stack())

	_, err := w.engine.Client.CancelRollout(t.Context(), w.rollouts()[0].EndpointID, w.rollouts()[0].ID, apiControl("seen enough"))
	require.NoError(t, err)
	require.True(t, assertSoon(soon, func() bool { return second.stack().Phase == "ahead of Git" }), "%+v", second.stack())
	require.Equal(t, []string{"CANCELED"}, w.states())
}
