package reconciler

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing/fstest"

	"github.com/sluice-dev/terraform-provider-sluice/internal/policy"
)

// rules are the compiled policies of a configuration, kept until their source changes.
type ruleMemory struct {
	key   string
	rules *policy.Rules
}

// rules loads a policy: from a folder of this machine, or from the followed commit of a
// followed repository. A pull request never brings the rules that judge it.
func (f *follower) rules(c PolicyConfig) (*policy.Rules, error) {
	folder, err := f.rulesFolder(c)
	if err != nil {
		return nil, err
	}
	key, err := policy.Digest(folder)
	if err != nil {
		return nil, err
	}
	name := policyName(c)
	f.mu.Lock()
	was, ok := f.compiled[name]
	f.mu.Unlock()
	if ok && was.key == key {
		return was.rules, nil
	}
	rules, err := policy.Load(folder)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.compiled[name] = ruleMemory{key, rules}
	f.mu.Unlock()
	return rules, nil
}

// rulesFolder is a policy's files.
func (f *follower) rulesFolder(c PolicyConfig) (fs.FS, error) {
	if c.Path != "" {
		return os.DirFS(c.Path), nil
	}
	tree, ok := f.treeOf(c.Repository)
	if !ok {
		return nil, fmt.Errorf("repository %s, which has the rules, was not read yet; nothing is judged without them", c.Repository)
	}
	out := fstest.MapFS{}
	root := path.Clean(c.Folder)
	for _, file := range tree.Files {
		name, ok := strings.CutPrefix(file.Path, root+"/")
		if root == "." {
			name, ok = file.Path, true
		}
		if ok {
			out[name] = &fstest.MapFile{Data: file.Bytes, Mode: 0o444}
		}
	}
	for _, no := range tree.Refused {
		if root == "." || strings.HasPrefix(no.Path, root+"/") {
			return nil, fmt.Errorf("%s %s", no.Path, no.Reason)
		}
	}
	return out, nil
}

// rulesKey tells the rules that judge this repository from others. Rules that cannot be
// read are others than those that could.
func (f *follower) rulesKey() string {
	var out []string
	for _, c := range f.config.Policies {
		folder, err := f.rulesFolder(c)
		key := ""
		if err == nil {
			key, err = policy.Digest(folder)
		}
		if err != nil {
			key = err.Error()
		}
		out = append(out, key)
	}
	return strings.Join(out, " ")
}
