package forge

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"strings"
)

// contextHash is how many characters of a hash tell two names apart: 80 bits.
const contextHash = 16

// Context names a commit status by its parts, such as sluice, repository and endpoint,
// in at most so many characters. The same parts always give the same name, and other
// parts another one. Plain short parts are joined by slashes and read as they are; what
// is too long, or could be mistaken for other parts, gets a "~" and a hash of all parts
// behind as much of its beginning as fits. No plain name has a "~".
func Context(limit int, parts ...string) string {
	name := strings.Join(parts, "/")
	plain := len(name) <= limit && len(parts) > 0
	for _, part := range parts {
		plain = plain && isPlain(part)
	}
	if plain {
		return name
	}
	hash := hashOf(parts)
	room := limit - 1 - len(hash)
	if room < 1 {
		return hash[:max(0, min(limit, len(hash)))]
	}
	var b strings.Builder
	for _, r := range name {
		if room == 0 {
			break
		}
		// Beyond the basic plane and below the space some forges refuse what others take.
		if r < ' ' || r == 0x7f || r > 0xffff || r == 0xfffd {
			r = '_'
		}
		b.WriteRune(r)
		room--
	}
	return b.String() + "~" + hash
}

// isPlain reports whether a part can stand for itself: a forge may fold or trim what is
// not ASCII or has blanks at its ends.
func isPlain(part string) bool {
	if part == "" || strings.TrimSpace(part) != part {
		return false
	}
	for _, r := range part {
		if r < ' ' || r >= 0x7f || r == '/' || r == '~' {
			return false
		}
	}
	return true
}

// hashOf hashes parts with their lengths, so that no two lists of parts are one text.
func hashOf(parts []string) string {
	h := sha256.New()
	for _, part := range parts {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write([]byte(part))
	}
	return strings.ToLower(base32.StdEncoding.EncodeToString(h.Sum(nil)))[:contextHash]
}
