// Package api holds the v2 wire types: resources, requests, enums, the error
// envelope and paging. Server and clients share them, so they cannot drift apart.
//
// The JSON is camelCase in the manner of protobuf JSON: enums are full prefixed
// strings, durations are seconds with an "s" ("390s"), timestamps are RFC 3339 in
// UTC, zero values are left out except where a zero is a fact (the first step's
// index, a reading of 0). What only Sluice's own engine says travels under one
// key, "sluice", so that the platform's shapes stay as they are.
package api
