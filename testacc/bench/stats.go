package main

import (
	"cmp"
	"math"
	"slices"
)

// quantile is the nearest-rank quantile of what was measured; 0 of nothing.
func quantile[T cmp.Ordered](values []T, q float64) T {
	var zero T
	if len(values) == 0 {
		return zero
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

func median[T cmp.Ordered](values []T) T { return quantile(values, 0.5) }

// ratios divides pair by pair, each repeat by its own.
func ratios(of, by []float64) []float64 {
	out := make([]float64, 0, len(of))
	for i := range min(len(of), len(by)) {
		out = append(out, of[i]/by[i])
	}
	return out
}
