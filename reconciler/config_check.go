package reconciler

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
)

const (
	shortestInterval = 5 * time.Second
	shortestRemind   = time.Minute
	mostRepositories = 1000
	mostStacks       = 5000
)

// check finds what is wrong with a configuration as a whole, whichever door it came
// through. Places are those that the decoder knows; without a file there are none.
func (d *decoder) check(c Config) {
	d.checkEngine(c.Engine)
	d.secret(c.State.Postgres, join("state", "0", "postgres"))
	if c.State.Keep < time.Hour {
		d.refuse(d.at(join("state", "0", "keep")), "History is kept for at least 1h", fmt.Sprintf("keep is %s.", c.State.Keep), `write keep = "2160h" for ninety days`)
	}
	d.checkHTTP(c.HTTP)
	stacks := 0
	for _, r := range c.Repositories {
		stacks += len(r.Stacks)
	}
	switch {
	case len(c.Repositories) == 0:
		d.refuse(d.at(""), "No repository", "There is nothing to follow.", `write repository "name" { url = "https://…" … }`)
	case len(c.Repositories) > mostRepositories || stacks > mostStacks:
		d.refuse(d.at(""), "Too many repositories or stacks", fmt.Sprintf("There are %d and %d; %d and %d are the most.", len(c.Repositories), stacks, mostRepositories, mostStacks), "run a second reconciler")
		return
	}
	for _, r := range c.Repositories {
		d.checkRepository(c, r)
	}
	d.checkFollowedOnce(c)
	d.checkDependencies(c)
	for _, n := range c.Notify {
		d.checkNotify(n)
	}
	for _, f := range c.Freezes {
		d.checkFreeze(c, f)
	}
	d.checkLimits(c.Limits)
}

func (d *decoder) checkEngine(e EngineConfig) {
	at := d.at(join("engine", "0", "url"))
	u, err := url.Parse(e.URL)
	switch {
	case e.URL == "":
		d.refuse(at, "No engine", "There is nothing to apply to.", `write engine { url = "https://…" }`)
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		d.refuse(at, "The engine's url is no address", "", `write "https://engine.example.com"`)
	case u.User != nil:
		d.refuse(at, secretInFile, "The engine's url holds a user or a password.", "give the key as api_key_file or api_key_env")
	case u.Scheme == "http" && e.APIKey.Given() && !(address{Host: u.Host}).loopback():
		d.warn(at, "The engine's key travels in the clear", "The url begins with http://.", "use https://")
	}
	d.secret(e.APIKey, join("engine", "0", "api_key"))
}

func (d *decoder) checkHTTP(h HTTPConfig) {
	where := join("http", "0")
	if _, there := d.places[where]; there || h.Listen != "" {
		_, port, err := net.SplitHostPort(h.Listen)
		if n, bad := strconv.Atoi(port); err != nil || bad != nil || n < 0 || n > 65535 {
			d.refuse(d.at(join(where, "listen")), "listen of http is no address to listen at", fmt.Sprintf("It is %q.", h.Listen), `write "127.0.0.1:8090" or ":8090"`)
		}
	}
	for _, k := range h.Keys {
		at := join(where, "key", k.Name)
		if !k.Secret.Given() {
			d.refuse(d.at(at), fmt.Sprintf("The key %q has no secret", k.Name), "", "write secret_file or secret_env")
		}
		d.secret(k.Secret, join(at, "secret"))
	}
}

// secret checks where a secret is said to be. One that is not there yet is a warning:
// a configuration is also checked where its secrets are not.
func (d *decoder) secret(s Secret, where string) {
	at := d.at(where)
	switch {
	case s.File != "" && s.Env != "":
		d.refuse(at, "Two places for one secret", "", "keep the file or the environment variable")
	case s.Env != "":
		if _, set := os.LookupEnv(s.Env); !set {
			d.warn(at, fmt.Sprintf("The environment variable %s is not set here", s.Env), "The secret is read when it is needed.", "")
		}
	case s.File != "":
		info, err := os.Stat(s.File)
		switch {
		case err != nil:
			d.warn(at, fmt.Sprintf("The secret's file cannot be read here: %v", err), "The secret is read when it is needed.", "")
		case !info.Mode().IsRegular() && info.Mode()&fs.ModeNamedPipe == 0:
			d.refuse(at, fmt.Sprintf("The secret's file %s is not a file", s.File), "", "")
		case runtime.GOOS != "windows" && info.Mode().Perm()&0o007 != 0:
			d.warn(at, fmt.Sprintf("Others can read the secret's file %s", s.File), fmt.Sprintf("Its mode is %#o.", info.Mode().Perm()), "chmod o-rwx "+s.File)
		}
	}
}

// present warns of a file or folder that is not there.
func (d *decoder) present(path, where string) {
	if path == "" {
		return
	}
	if _, err := os.Stat(path); err != nil {
		d.warn(d.at(where), fmt.Sprintf("Cannot be read here: %v", err), "", "paths are from the configuration file's folder")
	}
}

func (d *decoder) checkNotify(n NotifyConfig) {
	where := join("notify", n.Name)
	switch {
	case n.Kind == "":
		d.refuse(d.at(where), fmt.Sprintf("notify %q has no kind", n.Name), "", "write kind = \"webhook\", \"slack\" or \"stdout\"")
	case n.Kind == Stdout && n.URL.Given():
		d.refuse(d.at(join(where, "url")), fmt.Sprintf("notify %q has an address, and stdout needs none", n.Name), "", "")
	case n.Kind != Stdout && !n.URL.Given():
		d.refuse(d.at(where), fmt.Sprintf("notify %q has no address", n.Name), "An address to post to is a secret.", "write url_file or url_env")
	}
	if n.Sign.Given() && n.Kind != Webhook {
		d.refuse(d.at(join(where, "sign")), fmt.Sprintf("notify %q cannot be signed", n.Name), "Only a webhook carries a signature.", "")
	}
	if n.Kind == Webhook && n.URL.Given() && !n.Sign.Given() {
		d.warn(d.at(where), fmt.Sprintf("The webhook %q is not signed", n.Name), "Who receives it cannot tell it from another's.", "write sign_file or sign_env")
	}
	if n.Remind != 0 && n.Remind < shortestRemind {
		d.refuse(d.at(join(where, "remind")), fmt.Sprintf("notify %q reminds too often", n.Name), fmt.Sprintf("remind is %s.", n.Remind), "write at least 1m, or 0s for no reminders")
	}
	for _, e := range n.Events {
		if !toldAs(e) {
			d.refuse(d.at(join(where, "events")), fmt.Sprintf("%q is no kind of events", e), fmt.Sprintf("notify %q would never hear of one.", n.Name), kindHint(e))
		}
	}
	d.secret(n.URL, join(where, "url"))
	d.secret(n.Sign, join(where, "sign"))
}

func (d *decoder) checkFreeze(c Config, f Freeze) {
	where := join("freeze", f.Name)
	repeated, once := f.Cron != "" || f.For != 0, !f.From.IsZero() || !f.Until.IsZero()
	switch {
	case repeated == once:
		d.refuse(d.at(where), fmt.Sprintf("freeze %q needs one time", f.Name), "", "write from and until for a single one, or cron and for for a repeated one")
	case once && (f.From.IsZero() || f.Until.IsZero()):
		d.refuse(d.at(where), fmt.Sprintf("freeze %q needs from and until", f.Name), "", "")
	case once && !f.Until.After(f.From):
		d.refuse(d.at(join(where, "until")), fmt.Sprintf("freeze %q ends before it begins", f.Name), "", "")
	case once && !f.Until.After(d.now):
		d.warn(d.at(join(where, "until")), fmt.Sprintf("freeze %q is over", f.Name), fmt.Sprintf("It ended at %s and holds nothing up.", f.Until.Format(time.RFC3339)), "take it out, or give it the times that are meant")
	case repeated && (f.Cron == "" || f.For == 0):
		d.refuse(d.at(where), fmt.Sprintf("freeze %q needs cron and for", f.Name), "", `write cron = "0 18 * * 5" and for = "62h" for weekends`)
	case repeated:
		if _, err := f.schedule(); err != nil {
			d.refuse(d.at(join(where, "cron")), fmt.Sprintf("freeze %q cannot be read", f.Name), err.Error()+".", "cron is minute, hour, day of the month, month, day of the week")
		}
		if _, err := f.zone(); err != nil {
			d.refuse(d.at(join(where, "zone")), fmt.Sprintf("zone of freeze %q cannot be", f.Name), err.Error()+".", "zone is a name such as \"Europe/Berlin\"")
		}
	}
	for _, k := range f.Stacks {
		d.known(c, k, join(where, "stacks"))
	}
}

// known refuses a stack, or a whole repository, that is not there.
func (d *decoder) known(c Config, k StackKey, where string) {
	var names []string
	for _, r := range c.Repositories {
		if r.Name == k.Repository && k.Stack == "" {
			return
		}
		names = append(names, r.Name)
		for _, s := range r.Stacks {
			if (StackKey{r.Name, s.Name}) == k {
				return
			}
			names = append(names, StackKey{r.Name, s.Name}.String())
		}
	}
	name := strings.TrimSuffix(k.String(), "/")
	d.refuse(d.at(where), fmt.Sprintf("There is no %q", name), "", declaration.Nearest(name, names))
}

func (d *decoder) checkLimits(l Limits) {
	for _, x := range []struct {
		name        string
		value       float64
		least, most float64
	}{
		{"rollouts", float64(l.Rollouts), 0, 10_000},
		{"fetches", float64(l.Fetches), 1, 100},
		{"per_host", l.PerHost, 0.01, 1000},
		{"file_bytes", float64(l.FileBytes), 1024, 64 << 20},
		{"files", float64(l.Files), 1, 100_000},
	} {
		if !(x.value >= x.least && x.value <= x.most) {
			d.refuse(d.at(join("limits", "0", x.name)), fmt.Sprintf("%s of limits is out of bounds", x.name), fmt.Sprintf("It is %v; from %v to %v can be.", x.value, x.least, x.most), "")
		}
	}
}

// checkFollowedOnce refuses two repositories that would apply the same folder.
func (d *decoder) checkFollowedOnce(c Config) {
	type followed struct{ host, path, wanted, folder string }
	first := map[followed]StackKey{}
	for _, r := range c.Repositories {
		a, err := parseAddress(r.URL)
		if err != nil {
			continue
		}
		for _, s := range r.Stacks {
			f := followed{a.Host, strings.ToLower(a.Path), fmt.Sprint(r.Wanted), cleanFolder(s.Folder)}
			other, taken := first[f]
			if !taken {
				first[f] = StackKey{r.Name, s.Name}
			} else if other.Repository != r.Name { // within one it is refused already
				d.refuse(d.at(join("repository", r.Name, "url")), fmt.Sprintf("repository %q follows what %q does", r.Name, other.Repository), fmt.Sprintf("Both have the folder %s of the same commit, as %s and %s.", s.Folder, other, StackKey{r.Name, s.Name}), "keep one, or follow another branch or folder")
			}
		}
	}
}

// checkDependencies finds dependencies that lead nowhere or in a circle, which is told
// with all its members.
func (d *decoder) checkDependencies(c Config) {
	on := map[StackKey][]StackKey{}
	var order []StackKey
	for _, r := range c.Repositories {
		for _, s := range r.Stacks {
			k := StackKey{r.Name, s.Name}
			on[k] = s.DependsOn
			order = append(order, k)
			for _, dep := range s.DependsOn {
				d.known(c, dep, join("repository", r.Name, "stack", s.Name, "depends_on"))
			}
		}
	}
	const under, done = 1, 2
	state := map[StackKey]int{}
	var path []StackKey
	var visit func(StackKey)
	visit = func(k StackKey) {
		state[k] = under
		path = append(path, k)
		for _, next := range on[k] {
			switch state[next] {
			case under:
				d.circle(path[slices.Index(path, next):])
			case done:
			default:
				if _, there := on[next]; there {
					visit(next)
				}
			}
		}
		path = path[:len(path)-1]
		state[k] = done
	}
	for _, k := range order {
		if state[k] == 0 {
			visit(k)
		}
	}
}

func (d *decoder) circle(members []StackKey) {
	var names []string
	for _, m := range append(slices.Clone(members), members[0]) {
		names = append(names, m.String())
	}
	last := members[len(members)-1]
	d.refuse(d.at(join("repository", last.Repository, "stack", last.Stack, "depends_on")), "Stacks depend on each other in a circle", strings.Join(names, " → ")+".", "take one depends_on away")
}

var errOutside = errors.New("it leads out of the repository")
