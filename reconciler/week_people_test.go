package reconciler

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/forgetest"
)

// weekRepo is a repository with the people who work on it.
type weekRepo struct {
	w      *week
	name   string
	git    *memoryRemote
	forge  *forgetest.World // nil for none
	houses []*weekHouse
	specs  map[string][]spec // what each commit says, by house
	open   []*weekPull
	merged []*weekPull
	gone   string // the head of the branch that was deleted; empty while it is there
	n      int
}

// weekHouse is one endpoint with its two deployments and the rollout between them.
type weekHouse struct {
	repo  *weekRepo
	n     int
	name  string
	stack string
	words int // changes in Git and words of people since the beginning that may start a rollout
	backs int // words that may start a reverse one
}

// spec is what Git says of a house.
type spec struct {
	file     string
	most     int // replicas of a
	from, to string
	steps    []int // no rollout without one
	broken   bool
}

// weekPull is a pull request.
type weekPull struct {
	number int
	branch string
	specs  []spec
	said   int // commands of people
}

func (r *weekRepo) stacks() []string {
	var out []string
	for _, h := range r.houses {
		if !slices.Contains(out, h.stack) {
			out = append(out, h.stack)
		}
	}
	return out
}

// text is the declaration of a house.
func (h *weekHouse) text(s spec) string {
	var b strings.Builder
	fmt.Fprintf(&b, "resource \"sluice_endpoint\" \"e%d\" {\n  name = %q\n}\n", h.n, h.name)
	for i, side := range []string{"a", "b"} {
		weight, least, most := "", 0, 0
		if i == 0 {
			weight, least, most = "\n  initial_traffic_weight = 100", 1, s.most
		}
		fmt.Fprintf(&b, "resource \"sluice_deployment\" \"%s%d\" {\n  endpoint_id = sluice_endpoint.e%d.id\n  name = %q\n  model = \"m/%s\"%s\n  autoscaling = { min_replicas = %d, max_replicas = %d }\n}\n", side, h.n, h.n, side, side, weight, least, most)
	}
	if len(s.steps) > 0 {
		var rungs []string
		for _, n := range s.steps {
			rungs = append(rungs, fmt.Sprintf("{ traffic = %d }", n))
		}
		fmt.Fprintf(&b, "resource \"sluice_rollout\" \"r%d\" {\n  endpoint_id = sluice_endpoint.e%d.id\n  source_deployment_id = sluice_deployment.%s%d.id\n  target_deployment_id = sluice_deployment.%s%d.id\n", h.n, h.n, s.from, h.n, s.to, h.n)
		fmt.Fprintf(&b, "  canary = { steps = [%s], step_interval = \"40m\" }\n  metrics = [{\n    name = \"router_latency\", stat = \"PERCENTILE\", percentile = 95\n    regression_check = { direction = \"HIGHER_IS_WORSE\", max_regression_percent = 25 }\n  }]\n}\n", strings.Join(rungs, ", "))
	}
	if s.broken {
		b.WriteString("resource \"sluice_endpoint\" {\n")
	}
	return b.String()
}

// files are what a list of specs looks like in the repository.
func (r *weekRepo) files(specs []spec) map[string]string {
	out := map[string]string{}
	for n, s := range specs {
		out[r.houses[n].stack+"/"+s.file] = r.houses[n].text(s)
	}
	return out
}

const mainRef = "refs/heads/main"

func (r *weekRepo) head() string { return r.git.heads[mainRef] }

// now is what the followed branch says.
func (r *weekRepo) now() []spec { return slices.Clone(r.specs[r.head()]) }

// commit pushes specs to the followed branch.
func (r *weekRepo) commit(subject string, specs []spec) string {
	id := r.push(mainRef, r.head(), subject, specs)
	return id
}

// push pushes specs to a branch, on a parent.
func (r *weekRepo) push(ref, parent, subject string, specs []spec) string {
	files := map[string]string{}
	for path := range r.git.commits[parent].files {
		files[path] = ""
	}
	maps.Copy(files, r.files(specs))
	r.n++
	files["README.md"] = fmt.Sprintf("%s %d", subject, r.n)
	before := r.said()
	id := r.git.pushOn(ref, parent, subject, files)
	r.specs[id] = slices.Clone(specs)
	if ref == mainRef {
		r.count(before)
	}
	return id
}

// said is the text of each house on the followed branch.
func (r *weekRepo) said() []string {
	var out []string
	for n, s := range r.specs[r.head()] {
		out = append(out, r.houses[n].text(s))
	}
	return out
}

// count notes which houses the followed branch says something else of than before.
func (r *weekRepo) count(before []string) {
	now := r.said()
	for n, h := range r.houses {
		if n >= len(before) || n >= len(now) || before[n] != now[n] {
			h.words++
		}
	}
}

// happen draws what people do until the next pass.
func (w *week) happen() {
	acts := []struct {
		often int
		do    func(r *weekRepo)
	}{
		{30, (*weekRepo).doCommit}, {6, (*weekRepo).doRevert}, {6, (*weekRepo).doNothing}, {6, (*weekRepo).doMove}, {3, (*weekRepo).doForce}, {2, (*weekRepo).doDelete},
		{24, (*weekRepo).doOpen}, {10, (*weekRepo).doPush}, {16, (*weekRepo).doMerge}, {5, (*weekRepo).doClose},
		{25, (*weekRepo).doSay}, {25, (*weekRepo).doSteer}, {8, (*weekRepo).doHand}, {10, (*weekRepo).doSlow}, {2, (*weekRepo).doOwn},
	}
	all := 0
	for _, a := range acts {
		all += a.often
	}
	for _, r := range w.repos {
		if r.gone != "" && w.chance(0.2) {
			r.restore()
		}
	}
	for range w.draw.IntN(w.size.acts + 1) {
		r := w.repos[w.draw.IntN(len(w.repos))]
		at := w.draw.IntN(all)
		for _, a := range acts {
			if at -= a.often; at < 0 {
				a.do(r)
				break
			}
		}
	}
}

// another is a spec that somebody wants after one.
func (w *week) another(s spec) spec {
	if s.broken {
		s.broken = w.chance(0.2)
	}
	switch w.draw.IntN(10) {
	case 0, 1, 2, 3, 4:
		if len(s.steps) > 0 {
			s.from, s.to = s.to, s.from
		}
		s.steps = [][]int{{10, 100}, {50, 100}, {5, 25, 100}, {100}, {1 + w.draw.IntN(90), 100}}[w.draw.IntN(5)]
	case 5:
		s.steps = []int{1 + w.draw.IntN(90), 100}
	case 6, 7:
		s.most = 1 + w.draw.IntN(4)
	case 8:
		s.steps, s.from, s.to = nil, s.to, s.from
	case 9:
		s.broken = w.chance(0.5)
	}
	return s
}

func (r *weekRepo) change(specs []spec) (changed []spec, of *weekHouse) {
	n := r.w.draw.IntN(len(specs))
	specs[n] = r.w.another(specs[n])
	return specs, r.houses[n]
}

func (r *weekRepo) doCommit() {
	if r.gone != "" {
		return
	}
	specs, h := r.change(r.now())
	r.w.log("%s: a commit changes %s: %+v", r.name, h.name, specs[h.n])
	r.commit("change "+h.name, specs)
}

func (r *weekRepo) doRevert() {
	if r.gone != "" {
		return
	}
	line := r.git.ancestors(r.head())
	to := line[r.w.draw.IntN(min(len(line), 5))]
	r.w.log("%s: reverted to %s", r.name, short(to))
	r.commit("revert", r.specs[to])
}

func (r *weekRepo) doNothing() {
	if r.gone == "" {
		r.commit("no change", r.now())
	}
}

func (r *weekRepo) doMove() {
	if r.gone != "" {
		return
	}
	specs := r.now()
	n := r.w.draw.IntN(len(specs))
	specs[n].file = fmt.Sprintf("h%d-%d.tf", n, r.n)
	r.commit("move a file", specs)
}

// doForce rewrites the followed branch to one of its older commits.
func (r *weekRepo) doForce() {
	if r.gone != "" {
		return
	}
	line, before := r.git.ancestors(r.head()), r.said()
	r.git.heads[mainRef] = line[r.w.draw.IntN(min(len(line), 4))]
	r.count(before)
	r.w.log("%s: forced to %s", r.name, short(r.head()))
}

func (r *weekRepo) doDelete() {
	if r.gone == "" {
		r.gone = r.head()
		delete(r.git.heads, mainRef)
		r.w.log("%s: the branch is deleted", r.name)
	}
}

func (r *weekRepo) restore() {
	r.git.heads[mainRef], r.gone = r.gone, ""
	r.w.log("%s: the branch is back", r.name)
}

func (r *weekRepo) doOpen() {
	if r.forge == nil || r.gone != "" || len(r.open) >= 4 {
		r.doCommit()
		return
	}
	specs, h := r.change(r.now())
	r.n++
	branch := fmt.Sprintf("change-%d", r.n)
	head := r.push("refs/heads/"+branch, r.head(), branch, specs)
	number := r.forge.OpenPullRequest(forgetest.Opening{Author: "ann", Title: branch, Head: head, HeadRef: branch, Base: r.head()})
	r.open = append(r.open, &weekPull{number: number, branch: branch, specs: specs})
	r.w.log("%s: pull request %d changes %s", r.name, number, h.name)
}

// one draws an open pull request.
func (r *weekRepo) one() *weekPull {
	if len(r.open) == 0 || r.gone != "" {
		return nil
	}
	return r.open[r.w.draw.IntN(len(r.open))]
}

func (r *weekRepo) doPush() {
	p := r.one()
	if p == nil || r.forge.PullRequestOf(p.number).State != forge.IsOpen {
		return
	}
	parent := r.git.heads["refs/heads/"+p.branch]
	if r.w.chance(0.3) { // forced: on the base as it is now
		parent, p.specs = r.head(), r.now()
	}
	p.specs, _ = r.change(slices.Clone(p.specs))
	r.forge.Push(p.number, r.push("refs/heads/"+p.branch, parent, "more", p.specs))
}

func (r *weekRepo) doMerge() {
	p := r.one()
	if p == nil || r.forge.PullRequestOf(p.number).State != forge.IsOpen {
		return
	}
	head := r.git.heads["refs/heads/"+p.branch]
	if _, err := r.git.Merge(r.w.t.Context(), r.head(), head); err != nil {
		r.push("refs/heads/"+p.branch, r.head(), "rebased", p.specs)
		head = r.git.heads["refs/heads/"+p.branch]
		r.forge.Push(p.number, head)
		return
	}
	id := r.commit(fmt.Sprintf("Merge #%d", p.number), p.specs)
	r.forge.Merge(p.number, id)
	r.open = slices.DeleteFunc(r.open, func(o *weekPull) bool { return o == p })
	r.merged = append(r.merged, p)
	r.w.log("%s: pull request %d is merged as %s", r.name, p.number, short(id))
}

func (r *weekRepo) doClose() {
	p := r.one()
	if p == nil {
		return
	}
	if r.forge.PullRequestOf(p.number).State == forge.IsOpen {
		r.forge.Close(p.number)
	} else {
		r.forge.Reopen(p.number)
	}
}

// doSay writes a command below a pull request.
func (r *weekRepo) doSay() {
	talks := slices.Concat(r.open, r.merged[max(0, len(r.merged)-3):])
	if len(talks) == 0 {
		return
	}
	p := talks[r.w.draw.IntN(len(talks))]
	who := []string{"ann", "ben", "olga", "olga", "zoe"}[r.w.draw.IntN(5)]
	text := []string{
		"/sluice cancel it looks wrong", "/sluice resume", "/sluice promote", "/sluice reverse answers are worse", "/sluice reverse again", "/sluice retry", "/sluice suspend for now",
		"/sluice continue", "/sluice continue", "/sluice plan", "/sluice help", "/sluice stop it", "nice work", "/sluice approve " + r.digest(p),
	}[r.w.draw.IntN(14)]
	r.say(p, who, text)
}

func (r *weekRepo) say(p *weekPull, who, text string) {
	r.forge.Say(p.number, who, text)
	r.w.log("%s: %s says on %d: %s", r.name, who, p.number, text)
	if !strings.HasPrefix(text, "/sluice ") {
		return
	}
	p.said++
	for _, h := range r.houses {
		switch {
		case strings.HasPrefix(text, "/sluice reverse"):
			h.backs++
		case strings.HasPrefix(text, "/sluice retry"):
			h.words++
		}
	}
}

// digest is the plan that a pull request shows.
func (r *weekRepo) digest(p *weekPull) string {
	if r.w.process != nil {
		for _, f := range r.w.process.r.followers {
			if known := f.pulls.known[p.number]; f.config.Name == r.name && known != nil && len(known.Plans) > 0 && known.Plans[0].Digest != "" {
				return planning.ShortDigest(known.Plans[0].Digest)
			}
		}
	}
	return "0123456789ab"
}

// busy draws a house whose rollout is under way.
func (r *weekRepo) busy() (api.Rollout, bool) {
	for _, n := range r.w.draw.Perm(len(r.houses)) {
		if live, ok := r.w.watched.underWay(r.houses[n]); ok {
			return live, true
		}
	}
	return api.Rollout{}, false
}

// doSteer lets somebody steer a rollout at the engine itself.
func (r *weekRepo) doSteer() {
	live, ok := r.busy()
	if !ok {
		return
	}
	var err error
	c, ctx := r.w.boss, r.w.t.Context()
	verb := []string{"pause", "resume", "resume", "promote", "cancel"}[r.w.draw.IntN(5)]
	switch verb {
	case "pause":
		_, err = c.PauseRollout(ctx, live.EndpointID, live.ID, api.Control{Reason: "lunch"})
	case "resume":
		_, err = c.ResumeRollout(ctx, live.EndpointID, live.ID, api.Control{})
	case "promote":
		_, err = c.PromoteRollout(ctx, live.EndpointID, live.ID, api.Control{})
	case "cancel":
		_, err = c.CancelRollout(ctx, live.EndpointID, live.ID, api.Control{Reason: "enough"})
	}
	r.w.log("%s: carla sends %s to %s: %v", r.name, verb, live.ID, err)
}

// doHand edits something at the engine that Git says otherwise.
func (r *weekRepo) doHand() {
	h := r.houses[r.w.draw.IntN(len(r.houses))]
	id := r.w.watched.endpoints[h.name]
	if id == "" {
		return
	}
	ctx := r.w.t.Context()
	if r.w.chance(0.5) {
		v := []string{api.VisibilityInternal, api.VisibilityPrivate}[r.w.draw.IntN(2)]
		_, err := r.w.boss.UpdateEndpoint(ctx, id, "visibility", api.UpdateEndpoint{Visibility: &v})
		r.w.log("%s: carla makes %s %s: %v", r.name, h.name, v, err)
		return
	}
	for d, err := range r.w.boss.Deployments(ctx, id, engineclient.ListOptions{}) {
		if err != nil || !strings.HasSuffix(d.Name, "/a") {
			continue
		}
		most := 1 + r.w.draw.IntN(4)
		_, err = r.w.boss.UpdateDeployment(ctx, id, d.ID, "autoscaling", api.UpdateDeployment{Autoscaling: &api.Autoscaling{MinReplicas: d.Autoscaling.MinReplicas, MaxReplicas: &most}})
		r.w.log("%s: carla sets %s of %s to at most %d: %v", r.name, d.ID, h.name, most, err)
	}
}

// doSlow makes what a rollout goes to slow, or well again.
func (r *weekRepo) doSlow() {
	live, ok := r.busy()
	if !ok {
		return
	}
	if r.w.meter.value[live.TargetDeploymentID] == 0 {
		r.w.meter.value[live.TargetDeploymentID] = 400
		r.w.log("%s: the target of %s is slow", r.name, live.ID)
	} else {
		delete(r.w.meter.value, live.TargetDeploymentID)
	}
}

// doOwn lets somebody make a rollout of their own at the engine.
func (r *weekRepo) doOwn() {
	h := r.houses[r.w.draw.IntN(len(r.houses))]
	id := r.w.watched.endpoints[h.name]
	if _, busy := r.w.watched.underWay(h); busy || id == "" {
		return
	}
	var sides []string
	for d, err := range r.w.boss.Deployments(r.w.t.Context(), id, engineclient.ListOptions{}) {
		if err == nil {
			sides = append(sides, d.ID)
		}
	}
	if len(sides) != 2 {
		return
	}
	slices.Sort(sides)
	r.n++
	made, err := r.w.boss.CreateRollout(r.w.t.Context(), id, api.RolloutSpec{SourceDeploymentID: sides[r.n%2], TargetDeploymentID: sides[1-r.n%2], Canary: &api.Canary{Steps: []api.CanaryStep{{Traffic: 100}}}}, fmt.Sprint("own ", r.name, r.n))
	if err == nil {
		_, err = r.w.boss.StartRollout(r.w.t.Context(), id, made.ID)
	}
	r.w.log("%s: carla makes a rollout of her own of %s: %v", r.name, h.name, err)
}

// drawIllness draws what is out of order in the next pass.
func (w *week) drawIllness() {
	for _, r := range w.repos {
		r.git.down = nil
	}
	if w.mending {
		return
	}
	w.ill = illness{engine: w.chance(0.02)}
	if w.chance(0.15) {
		w.ill.lose = 1 + w.draw.IntN(3)
	}
	if w.chance(0.04) {
		w.ill.deadAt = 1 + w.draw.IntN(8)
	}
	if w.chance(0.04) {
		if w.standby == nil {
			w.standby = w.start()
		}
		w.ill.frozeAt = 1 + w.draw.IntN(60)
	}
	for _, r := range w.repos {
		if w.chance(0.02) {
			r.git.down = errGitDown
		}
		if r.forge != nil {
			r.forge.Heal()
		}
		if r.forge != nil && w.chance(0.03) {
			w.watched.lost[r.name] += 3
			for range 3 {
				r.forge.Next(forgetest.Any, []forgetest.Fault{forgetest.Lost(), forgetest.Answer(502), forgetest.Limit(429, time.Minute), r.forge.Stale()}[w.draw.IntN(4)])
			}
		}
	}
	if w.chance(0.02) {
		w.restart()
	}
}

// restart ends the process that works as a person does: the lease is given back.
func (w *week) restart() {
	if w.process != nil && w.process.r.End(w.t.Context()) == nil {
		w.log("process %d is stopped", w.process.n)
		w.process = nil
		w.ensure()
	}
}

// heal ends everything that is out of order outside.
func (w *week) heal() {
	clear(w.meter.value)
	for _, r := range w.repos {
		if r.gone != "" {
			r.restore()
		}
		if r.forge != nil {
			r.forge.Heal()
		}
	}
}

// decide lets people decide what waits for them: what is parked goes on or is canceled,
// what is suspended goes on, what needs a word gets it, and what the engine cannot do is
// taken out of Git.
func (w *week) decide() {
	ctx := w.t.Context()
	for _, r := range w.repos {
		for _, h := range r.houses {
			live, ok := w.watched.underWay(h)
			if ok && parked(live.State) {
				_, err := w.boss.ResumeRollout(ctx, live.EndpointID, live.ID, api.Control{})
				if err != nil {
					_, err = w.boss.CancelRollout(ctx, live.EndpointID, live.ID, api.Control{Reason: "the week is over"})
				}
				w.log("%s: carla goes on with %s: %v", r.name, live.ID, err)
			}
			if ok && live.State == engineclient.StatePending && w.watched.foreign[live.ID] {
				_, _ = w.boss.StartRollout(ctx, live.EndpointID, live.ID)
			}
		}
	}
	w.watched.eachStack(func(r *weekRepo, s StackStatus) {
		k := StackKey{r.name, s.Name}
		ask := func(verb Verb, digest string) {
			w.n++
			err := w.process.r.recordAsk(ctx, k, askRecord{ID: fmt.Sprint("http ", w.n), Stack: s.Name, Verb: verb, Digest: digest, Who: "carla", Via: "http", At: w.now, Reason: "the week is over"})
			w.log("%s: carla asks for %s: %v", k, verb, err)
		}
		if s.Suspended != "" {
			ask(Continue, "")
		}
		for _, wait := range s.Waits {
			if wait.For == ForApproval || wait.For == ForPrune {
				ask(Approve, s.Plan)
			}
		}
		if s.Phase == Failed || s.Phase == Waiting && slices.ContainsFunc(s.Waits, func(x Wait) bool { return x.For == ForPerson && !strings.Contains(x.What, "suspended") }) {
			r.takeOut(s)
		}
	})
}

// takeOut takes the rollouts of a stack out of Git that the engine cannot do as they stand.
func (r *weekRepo) takeOut(s StackStatus) {
	specs := r.now()
	for n, h := range r.houses {
		if h.stack == s.Name {
			specs[n].steps = nil
		}
	}
	r.w.log("%s: the rollouts of %s are taken out: %s %v", r.name, s.Name, s.Error, s.Waits)
	r.commit("give up", specs)
}
