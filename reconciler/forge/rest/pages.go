package rest

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// mostPages bounds a list: 100 things a page.
const mostPages = 1000

// PerPage is how many things are asked for at once; no forge gives more.
const PerPage = 100

// Pages reads a list to its end. read returns a page's things and the number of the
// next page, 0 for none.
func Pages[T any](read func(page int) (things []T, next int, err error)) ([]T, error) {
	var all []T
	page := 1
	for range mostPages {
		things, next, err := read(page)
		if err != nil {
			return nil, err
		}
		all = append(all, things...)
		if next == 0 {
			return all, nil
		}
		if next <= page {
			return nil, fmt.Errorf("the forge names page %d after page %d", next, page)
		}
		page = next
	}
	return nil, errors.New("the forge's list does not end")
}

// ParseBase checks the base address of a forge; empty means the public one.
func ParseBase(address, public string) (*url.URL, error) {
	if address == "" {
		address = public
	}
	u, err := url.Parse(strings.TrimRight(address, "/"))
	if err != nil {
		return nil, fmt.Errorf("the forge's address: %w", err)
	}
	if (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || u.User != nil {
		return nil, fmt.Errorf("the forge's address %q must be https://host without user and password", u.Redacted())
	}
	return u, nil
}

// ParseName splits owner/name.
func ParseName(full string) (owner, name string, err error) {
	owner, name, ok := strings.Cut(full, "/")
	if !ok || owner == "" || name == "" || strings.Contains(name, "/") {
		return "", "", fmt.Errorf("the repository %q must be owner/name", full)
	}
	return owner, name, nil
}
