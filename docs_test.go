package main

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/provider"
)

var (
	fence   = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	code    = regexp.MustCompile("`[^`\n]*`")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+?) *$`)
	anchor  = regexp.MustCompile(`<a id="([^"]+)">`)
	sample  = regexp.MustCompile(`\bexamples/[A-Za-z0-9_./-]*[A-Za-z0-9_]`)
)

// here are the addresses under which the repository's own files are linked from pages
// that are read elsewhere.
const here = "https://github.com/sluice-dev/terraform-provider-sluice/"

// documents are the pages that people read by path from the root, each with the path
// that its links are relative to: a template's are those of the page it becomes.
func documents(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{"README.md": "README.md", "CONTRIBUTING.md": "CONTRIBUTING.md", "CHANGELOG.md": "CHANGELOG.md"}
	for _, root := range []string{"docs", "templates"} {
		require.NoError(t, filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && (strings.HasSuffix(p, ".md") || strings.HasSuffix(p, ".md.tmpl")) {
				found[filepath.ToSlash(p)] = strings.TrimSuffix(strings.Replace(filepath.ToSlash(p), "templates/", "docs/", 1), ".tmpl")
			}
			return err
		}))
	}
	return found
}

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(name))
	require.NoError(t, err)
	return string(text)
}

// slug is the anchor of a heading as GitHub and the registry make it.
func slug(heading string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(heading) {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
			b.WriteRune(r)
		case r == ' ':
			b.WriteByte('-')
		}
	}
	return b.String()
}

// anchors are what a link into a page may end in. A template has those of its page.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		found[slug(m[1])] = true
	}
	for _, m := range anchor.FindAllStringSubmatch(text, -1) {
		found[m[1]] = true
	}
	return found
}

// broken says why a link of a page leads nowhere; empty when it does not, or leads out
// of the repository.
func broken(t *testing.T, from, to string) string {
	t.Helper()
	if rest, own := strings.CutPrefix(to, here); own {
		kind, file, ok := strings.Cut(rest, "/main/")
		if !ok || kind != "blob" && kind != "tree" {
			return ""
		}
		from, to = "README.md", file
	}
	if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
		return ""
	}
	file, hash, _ := strings.Cut(to, "#")
	target := from
	if file != "" {
		target = path.Join(path.Dir(from), file)
	}
	info, err := os.Stat(filepath.FromSlash(target))
	switch {
	case err != nil:
		return "there is no " + target
	case hash == "" || info.IsDir():
		return ""
	case !anchors(page(t, target))[hash]:
		return target + " has no heading #" + hash
	}
	return ""
}

func TestEveryLinkAndAnchorOfTheDocsResolves(t *testing.T) {
	links := 0
	for name, at := range documents(t) {
		text := code.ReplaceAllString(fence.ReplaceAllString(page(t, name), ""), "``")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			links++
			if why := broken(t, at, m[1]); why != "" {
				t.Errorf("%s links to %s: %s", name, m[1], why)
			}
		}
	}
	require.Greater(t, links, 100)
	require.Equal(t, "there is no docs/nowhere.md", broken(t, "docs/index.md", "nowhere.md"))
	require.Equal(t, "docs/engine.md has no heading #nothing", broken(t, "docs/index.md", "engine.md#nothing"))
	require.Equal(t, "there is no examples/nothing", broken(t, "docs/index.md", here+"tree/main/examples/nothing"))
}

func TestEveryExampleThatTheDocsNameExists(t *testing.T) {
	seen := 0
	for name := range documents(t) {
		for _, folder := range sample.FindAllString(page(t, name), -1) {
			seen++
			_, err := os.Stat(filepath.FromSlash(folder))
			require.NoError(t, err, "%s names %s", name, folder)
		}
	}
	require.Greater(t, seen, 10)
}

// Each code of a finding has its page and each page its code.
func TestEveryFindingHasItsPage(t *testing.T) {
	codes := map[string]bool{}
	for _, c := range slices.Concat(planning.Codes(), planning.TrafficCodes()) {
		codes[string(c)] = true
	}
	pages := map[string]bool{}
	files, err := filepath.Glob("docs/findings/*.md")
	require.NoError(t, err)
	for _, f := range files {
		code := strings.TrimSuffix(filepath.Base(f), ".md")
		pages[code] = true
		require.True(t, strings.HasPrefix(page(t, f), "# "+code+"\n"), f)
	}
	require.Equal(t, slices.Sorted(maps.Keys(codes)), slices.Sorted(maps.Keys(pages)))
}

// Whatever the provider offers has a page, and no page is left of what it offered once.
func TestEverythingTheProviderOffersHasItsPage(t *testing.T) {
	got, err := providerserver.NewProtocol6(provider.New("test")())().GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	require.NoError(t, err)
	for folder, offered := range map[string][]string{
		"resources":      slices.Sorted(maps.Keys(got.ResourceSchemas)),
		"data-sources":   slices.Sorted(maps.Keys(got.DataSourceSchemas)),
		"functions":      slices.Sorted(maps.Keys(got.Functions)),
		"actions":        slices.Sorted(maps.Keys(got.ActionSchemas)),
		"list-resources": slices.Sorted(maps.Keys(got.ListResourceSchemas)),
	} {
		require.NotEmpty(t, offered, folder)
		files, err := filepath.Glob("docs/" + folder + "/*.md")
		require.NoError(t, err)
		var pages []string
		for _, f := range files {
			pages = append(pages, strings.TrimSuffix(filepath.Base(f), ".md"))
		}
		for i := range offered {
			offered[i] = strings.TrimPrefix(offered[i], "sluice_")
		}
		require.ElementsMatch(t, offered, pages, folder)
	}
}

// A guide that a text names by its title in quotes exists under that title.
func TestEveryGuideThatIsNamedExists(t *testing.T) {
	titles := map[string]bool{}
	files, err := filepath.Glob("docs/guides/*.md")
	require.NoError(t, err)
	title := regexp.MustCompile(`(?m)^page_title: "(.+)"$`)
	for _, f := range files {
		m := title.FindStringSubmatch(page(t, f))
		require.NotNil(t, m, f)
		titles[m[1]] = true
	}
	named, seen := regexp.MustCompile(`[Gg]uide ["*]([^"*\n]+)["*]`), 0
	for name := range documents(t) {
		for _, m := range named.FindAllStringSubmatch(page(t, name), -1) {
			seen++
			require.True(t, titles[m[1]], "%s names the guide %q", name, m[1])
		}
	}
	require.Positive(t, seen)
}

// What the guide to pull requests quotes of a comment stands so, line by line and in that
// order, in the comment that the renderer's tests expect.
func TestTheGuideToPullRequestsQuotesRealComments(t *testing.T) {
	quote := regexp.MustCompile("(?s)<!-- of (\\w+\\.md) -->\n```markdown\n(.*?)```")
	quotes := quote.FindAllStringSubmatch(page(t, "docs/guides/pull-requests.md"), -1)
	require.Greater(t, len(quotes), 6)
	for _, q := range quotes {
		rest := page(t, "internal/render/testdata/comments/"+q[1])
		for line := range strings.Lines(q[2]) {
			if strings.TrimSpace(line) == "" {
				continue
			}
			_, after, ok := strings.Cut("\n"+rest, "\n"+line)
			require.True(t, ok, "%s has not, or not in this place: %s", q[1], line)
			rest = after
		}
	}
}
