package gitsource

import (
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// watch says which paths are read.
type watch struct {
	include, exclude []string
	bases            []string // the folders in which each include begins; "" for the root
}

func newWatch(include, exclude []string) watch {
	if len(include) == 0 {
		include = []string{"**"}
	}
	w := watch{include: include, exclude: exclude}
	for _, p := range include {
		base, _ := doublestar.SplitPattern(p)
		if base == "." {
			base = ""
		}
		w.bases = append(w.bases, base)
	}
	return w
}

// file says whether a path is watched.
func (w watch) file(path string) bool {
	return matches(w.include, path) && !matches(w.exclude, path)
}

// below says whether watched paths may be below a folder.
func (w watch) below(folder string) bool {
	for _, p := range w.exclude {
		// What ends in /** and matches a child of no name in particular matches all below.
		if strings.HasSuffix(p, "**") && matches([]string{p}, folder+"/"+strings.Repeat("\x00", 64)) {
			return false
		}
	}
	for i, base := range w.bases {
		if within(base, folder) || base == "" {
			if deep(w.include[i], folder) {
				return true
			}
		} else if within(folder, base) { // on the way to it
			return true
		}
	}
	return false
}

// within says whether a path is a folder or below it.
func within(folder, path string) bool {
	return folder == path || strings.HasPrefix(path, folder+"/")
}

// deep says whether a pattern may match below a folder by its number of parts: one
// without ** matches paths of one depth only.
func deep(pattern, folder string) bool {
	return strings.Contains(pattern, "**") || strings.Contains(pattern, "{") || strings.Count(pattern, "/") > strings.Count(folder, "/")
}

func matches(patterns []string, path string) bool {
	for _, p := range patterns {
		if ok, err := doublestar.Match(p, path); ok && err == nil {
			return true
		}
	}
	return false
}
