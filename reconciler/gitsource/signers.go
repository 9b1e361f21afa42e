package gitsource

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// sshNamespace is what git signs for.
const sshNamespace = "git"

// allowedSigner is one line of an allowed signers file.
type allowedSigner struct {
	principals string // as written
	key        ssh.PublicKey
	namespaces []string // patterns; empty for all
	after      time.Time
	before     time.Time
}

// parseAllowedSigners reads an SSH allowed signers file: principals, options, key. Its
// errors name the line.
func parseAllowedSigners(text []byte) ([]allowedSigner, error) {
	var all []allowedSigner
	for i, line := range bytes.Split(text, []byte("\n")) {
		s := strings.TrimSpace(string(line))
		if s == "" || strings.HasPrefix(s, "#") {
			continue
		}
		one, err := parseSigner(s)
		if err != nil {
			return nil, fmt.Errorf("allowed signers, line %d: %w", i+1, err)
		}
		all = append(all, one)
	}
	return all, nil
}

func parseSigner(line string) (allowedSigner, error) {
	var out allowedSigner
	principals, rest, err := word(line)
	if err != nil {
		return out, err
	}
	out.principals = strings.ReplaceAll(principals, `"`, "")
	if out.principals == "" {
		return out, errors.New("it names no principal")
	}
	next, after, err := word(rest)
	if err != nil {
		return out, err
	}
	if !isKeyType(next) {
		if err := out.options(next); err != nil {
			return out, err
		}
		rest = after
	}
	key, _, options, more, err := ssh.ParseAuthorizedKey([]byte(rest))
	if err != nil || len(options) > 0 || len(more) > 0 {
		return out, errors.New("there is no public key where one belongs (principals, options, kind, key)")
	}
	out.key = key
	return out, nil
}

// isKeyType tells a kind of key from options.
func isKeyType(s string) bool {
	for _, prefix := range []string{"ssh-", "ecdsa-", "sk-ssh-", "sk-ecdsa-"} {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return false
}

// word cuts the first word, in which quotes hold blanks together.
func word(s string) (first, rest string, err error) {
	open := false
	for i, r := range s {
		switch {
		case r == '"':
			open = !open
		case (r == ' ' || r == '\t') && !open:
			return s[:i], strings.TrimLeft(s[i:], " \t"), nil
		}
	}
	if open {
		return "", "", errors.New("a quote is not closed")
	}
	return s, "", nil
}

// options reads the comma-separated options of one line.
func (a *allowedSigner) options(text string) error {
	for text != "" {
		one, rest, err := option(text)
		if err != nil {
			return err
		}
		text = rest
		key, value, _ := strings.Cut(one, "=")
		value = strings.Trim(value, `"`)
		switch strings.ToLower(key) {
		case "cert-authority":
			return errors.New("cert-authority is not supported; list the signers' own keys")
		case "namespaces":
			a.namespaces = strings.Split(value, ",")
		case "valid-after":
			a.after, err = instant(value)
		case "valid-before":
			a.before, err = instant(value)
		default:
			return fmt.Errorf("the option %q is not known", printable(key))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	if !a.after.IsZero() && !a.before.IsZero() && !a.after.Before(a.before) {
		return errors.New("it is valid at no time")
	}
	return nil
}

// option cuts the first option at a comma outside quotes.
func option(s string) (first, rest string, err error) {
	open := false
	for i, r := range s {
		switch {
		case r == '"':
			open = !open
		case r == ',' && !open:
			return s[:i], s[i+1:], nil
		}
	}
	if open {
		return "", "", errors.New("a quote is not closed")
	}
	return s, "", nil
}

// instant reads YYYYMMDD[HHMM[SS]], with a Z in UTC, else in this machine's zone.
func instant(s string) (time.Time, error) {
	zone := time.Local
	if t, ok := strings.CutSuffix(s, "Z"); ok {
		s, zone = t, time.UTC
	}
	for _, layout := range []string{"20060102", "200601021504", "20060102150405"} {
		if len(s) == len(layout) {
			if t, err := time.ParseInLocation(layout, s, zone); err == nil {
				return t, nil
			}
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time such as 20261231 or 202612312359Z", printable(s))
}

// find is the signer whose line allows a key for git at a time.
func find(signers []allowedSigner, key ssh.PublicKey, at time.Time) (who, reason string) {
	reason = "its SSH signature is by " + ssh.FingerprintSHA256(key) + ", which is not among the allowed signers"
	for _, s := range signers {
		if !bytes.Equal(s.key.Marshal(), key.Marshal()) {
			continue
		}
		switch {
		case len(s.namespaces) > 0 && !anyMatch(s.namespaces, sshNamespace):
			reason = "the key of its SSH signature is not allowed for git"
		case !s.after.IsZero() && at.Before(s.after):
			reason = "the key of its SSH signature was not valid yet on " + at.UTC().Format(time.DateOnly)
		case !s.before.IsZero() && at.After(s.before):
			reason = "the key of its SSH signature was no longer valid on " + at.UTC().Format(time.DateOnly)
		default:
			return s.principals, ""
		}
	}
	return "", reason
}

func anyMatch(patterns []string, s string) bool {
	for _, p := range patterns {
		if ok, err := path.Match(p, s); ok && err == nil {
			return true
		}
	}
	return false
}
