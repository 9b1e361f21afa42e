package gitsource

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// mostObject bounds a commit or tag object.
const mostObject = 1 << 20

// rawCommit is a commit as its bytes say it. Signatures are over bytes, so the bytes
// that were signed are the ones that are read, by one parser and strictly.
type rawCommit struct {
	id        plumbing.Hash
	tree      plumbing.Hash
	parents   []plumbing.Hash
	author    string // name <address>
	committer string
	at        time.Time
	subject   string
	payload   []byte // what a signature is over
	signature []byte // armored; empty for none
}

func (c rawCommit) commit() Commit {
	return Commit{ID: c.id.String(), Author: c.author, Committer: c.committer, At: c.at, Subject: c.subject}
}

// object reads a commit or tag object whole.
func readObject(store storer.EncodedObjectStorer, id plumbing.Hash, kind plumbing.ObjectType) ([]byte, error) {
	o, err := store.EncodedObject(plumbing.AnyObject, id)
	if err != nil {
		return nil, &broken{err}
	}
	if o.Type() != kind {
		return nil, &Refused{What: "object " + short(id.String()), Why: fmt.Sprintf("is a %s and not a %s", o.Type(), kind)}
	}
	if o.Size() > mostObject {
		return nil, &TooMuch{What: fmt.Sprintf("the %s %s", kind, short(id.String())), Limit: size(mostObject)}
	}
	raw, err := contents(o, id)
	if err != nil {
		return nil, &broken{err}
	}
	return raw, nil
}

func readCommit(store storer.EncodedObjectStorer, id plumbing.Hash) (rawCommit, error) {
	raw, err := readObject(store, id, plumbing.CommitObject)
	if err != nil {
		return rawCommit{}, err
	}
	c, err := parseCommit(raw)
	c.id = id
	if err != nil {
		return c, &Refused{What: "commit " + short(id.String()), Why: "cannot be read: " + err.Error()}
	}
	return c, nil
}

// parseCommit reads tree, parents, author and committer, which come once and in this
// order, and takes the signature out of the headers.
func parseCommit(raw []byte) (rawCommit, error) {
	var c rawCommit
	head, message, ok := bytes.Cut(raw, []byte("\n\n"))
	if !ok {
		return c, errors.New("it has no message")
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return c, errors.New("it has a zero byte in its headers")
	}
	lines := strings.SplitAfter(string(head)+"\n", "\n")
	var payload strings.Builder
	last, wants := "", "tree"
	for _, line := range lines {
		if line == "" {
			continue
		}
		if strings.HasPrefix(line, " ") {
			c.continued(&payload, last, line)
			continue
		}
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		last = key
		var err error
		if wants, err = c.header(key, value, wants); err != nil {
			return c, err
		}
		if key != "gpgsig" && key != "gpgsig-sha256" {
			payload.WriteString(line)
		}
	}
	if wants != "" {
		return c, fmt.Errorf("it has no %s", wants)
	}
	payload.WriteString("\n")
	payload.Write(message)
	c.payload = []byte(payload.String())
	subject, _, _ := strings.Cut(strings.TrimLeft(string(message), "\n"), "\n")
	c.subject = strings.ToValidUTF8(subject, "\uFFFD")
	return c, nil
}

func (c *rawCommit) continued(payload *strings.Builder, of, line string) {
	switch of {
	case "gpgsig":
		c.signature = append(c.signature, line[1:]...)
	case "gpgsig-sha256":
	default:
		payload.WriteString(line)
	}
}

// header takes one header and says which must come next; empty when all are there.
func (c *rawCommit) header(key, value, wants string) (string, error) {
	switch key {
	case "parent":
		if wants != "author" {
			return "", errors.New("its header parent is out of place")
		}
		if !fullID.MatchString(value) {
			return "", errors.New("its parent is no object id")
		}
		c.parents = append(c.parents, plumbing.NewHash(value))
		return wants, nil
	case "gpgsig":
		if len(c.signature) > 0 {
			return "", errors.New("it has two signatures")
		}
		c.signature = []byte(value + "\n")
	}
	once := key == "tree" || key == "author" || key == "committer"
	if key != wants && (once || wants != "") {
		return "", fmt.Errorf("its header %s is out of place", printable(key))
	}
	switch key {
	case "tree":
		if !fullID.MatchString(value) {
			return "", errors.New("its tree is no object id")
		}
		c.tree = plumbing.NewHash(value)
		return "author", nil
	case "author":
		c.author, _ = identity(value)
		return "committer", nil
	case "committer":
		c.committer, c.at = identity(value)
		return "", nil
	}
	return wants, nil
}

// identity splits "name <address> seconds zone".
func identity(s string) (string, time.Time) {
	s = strings.ToValidUTF8(s, "\uFFFD")
	end := strings.LastIndex(s, ">")
	if end < 0 {
		return s, time.Time{}
	}
	who, when := s[:end+1], strings.Fields(s[end+1:])
	if len(when) == 0 {
		return who, time.Time{}
	}
	seconds, err := strconv.ParseInt(when[0], 10, 64)
	if err != nil {
		return who, time.Time{}
	}
	return who, time.Unix(seconds, 0).UTC()
}

// rawTag is an annotated tag as its bytes say it.
type rawTag struct {
	object    plumbing.Hash
	kind      string
	name      string
	at        time.Time
	payload   []byte
	signature []byte
}

// parseTag reads the four headers that every tag has, in their order.
func parseTag(raw []byte) (rawTag, error) {
	var t rawTag
	t.payload = raw
	for _, begin := range []string{"-----BEGIN PGP SIGNATURE-----", "-----BEGIN PGP MESSAGE-----", "-----BEGIN SSH SIGNATURE-----"} {
		if i := bytes.LastIndex(raw, []byte("\n"+begin)); i >= 0 {
			t.payload, t.signature = raw[:i+1], raw[i+1:]
			break
		}
	}
	rest := string(t.payload)
	for _, key := range []string{"object", "type", "tag", "tagger"} {
		line, after, ok := strings.Cut(rest, "\n")
		value, found := strings.CutPrefix(line, key+" ")
		if !ok || !found {
			return t, fmt.Errorf("it has no %s in its place", key)
		}
		rest = after
		switch key {
		case "object":
			if !fullID.MatchString(value) {
				return t, errors.New("its object is no object id")
			}
			t.object = plumbing.NewHash(value)
		case "type":
			t.kind = value
		case "tag":
			t.name = value
		case "tagger":
			_, t.at = identity(value)
		}
	}
	return t, nil
}
