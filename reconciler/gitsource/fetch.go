package gitsource

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// cached bounds the objects that are kept in memory while a store is open.
const cached = 16 << 20

func newStore(r *remote) (objects, error) {
	if err := os.MkdirAll(r.options.Store.Folder, 0o700); err != nil {
		return nil, err
	}
	name := folderName(r.name)
	if r.options.Store.Kind == Shallow {
		return newShallow(r, name)
	}
	return newMirror(r, name), nil
}

var plain = regexp.MustCompile(`[^a-zA-Z0-9]+`)

// folderName tells remotes apart: a readable part and a hash of the address, so that
// another URL has another folder and never finds the old one's commits.
func folderName(address string) string {
	sum := sha256.Sum256([]byte(address))
	readable := strings.Trim(plain.ReplaceAllString(address, "-"), "-")
	return readable[:min(len(readable), 60)] + "-" + hex.EncodeToString(sum[:6])
}

// openStore opens the Git folder at a path.
func openStore(dir string) *filesystem.Storage {
	return filesystem.NewStorageWithOptions(osfs.New(dir), cache.NewObjectLRU(cached),
		filesystem.Options{ExclusiveAccess: true, KeepDescriptors: true, LargeObjectThreshold: 8 << 20})
}

// has says whether an object is in a store. go-git's own HasEncodedObject does not look
// into packs under exclusive access.
func has(store storer.EncodedObjectStorer, id plumbing.Hash) bool {
	_, err := store.EncodedObjectSize(id)
	return err == nil
}

// demuxed is the pack in an answer.
func demuxed(caps *capability.List, res io.Reader) io.Reader {
	switch {
	case caps.Supports(capability.Sideband64k):
		return sideband.NewDemuxer(sideband.Sideband64k, res)
	case caps.Supports(capability.Sideband):
		return sideband.NewDemuxer(sideband.Sideband, res)
	}
	return res
}

// tips are the objects that an advertisement has a ref at, tags also peeled.
func tips(adv *packp.AdvRefs) map[plumbing.Hash][]string {
	at := map[plumbing.Hash][]string{}
	for _, names := range []map[string]plumbing.Hash{adv.References, adv.Peeled} {
		for name, id := range names {
			at[id] = append(at[id], name)
		}
	}
	for _, names := range at {
		slices.Sort(names)
	}
	return at
}

// moved says whether the tag object that a ref was resolved to is no longer at it.
func moved(adv *packp.AdvRefs, at Resolved) bool {
	return at.Tag != "" && adv.References[at.Ref].String() != at.Tag
}

func goneTag(at Resolved) error {
	return &Gone{Commit: at.Commit, Why: fmt.Sprintf("the tag %s has moved or was deleted since it was listed", printable(strings.TrimPrefix(at.Ref, tags)))}
}
