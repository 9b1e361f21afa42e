package fleet

import (
	"fmt"
	"slices"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// Pool is one hardware type of the operator's inventory.
type Pool struct {
	// Hardware describes one replica's share. Its Capacity is the most replicas of
	// this type, negative for no limit of its own; Free is computed, not read.
	Hardware rollout.Hardware
	// GPUs are the indices that replicas of this type may use, Hardware.GPUCount
	// each. An index may stand in several pools, which then compete for it. Empty
	// where nobody assigns GPUs.
	GPUs []int
}

// inventory knows who holds which place.
type inventory struct {
	pools []Pool
	held  map[string]int // replicas by hardware id
	gpus  map[int]int    // holders by GPU index: 1, or more when replicas of an older inventory overlap
}

// newInventory refuses pools that contradict themselves.
func newInventory(pools []Pool) (*inventory, error) {
	v := &inventory{held: make(map[string]int), gpus: make(map[int]int)}
	for _, p := range pools {
		if err := checkPool(p); err != nil {
			return nil, err
		}
		if v.pool(p.Hardware.ID) != nil {
			return nil, fmt.Errorf("inventory: hardware %q is named twice", p.Hardware.ID)
		}
		p.GPUs = slices.Sorted(slices.Values(p.GPUs))
		v.pools = append(v.pools, p)
	}
	return v, nil
}

// checkPool refuses a pool that cannot be assigned from.
func checkPool(p Pool) error {
	id := p.Hardware.ID
	if id == "" {
		return fmt.Errorf("inventory: hardware without an id")
	}
	if len(p.GPUs) > 0 && p.Hardware.GPUCount < 1 {
		return fmt.Errorf("inventory: hardware %q has GPUs %v but says 0 GPUs a replica", id, p.GPUs)
	}
	sorted := slices.Sorted(slices.Values(p.GPUs))
	if len(slices.Compact(slices.Clone(sorted))) != len(sorted) || (len(sorted) > 0 && sorted[0] < 0) {
		return fmt.Errorf("inventory: GPUs %v of hardware %q are not distinct indices", p.GPUs, id)
	}
	return nil
}

// pool finds a hardware type, nil for an unknown one.
func (v *inventory) pool(id string) *Pool {
	for i := range v.pools {
		if v.pools[i].Hardware.ID == id {
			return &v.pools[i]
		}
	}
	return nil
}

// capacity is how many replicas of the pool fit in all, negative for no limit.
func (p *Pool) capacity() int {
	c := p.Hardware.Capacity
	if len(p.GPUs) == 0 {
		return c
	}
	byGPU := len(p.GPUs) / p.Hardware.GPUCount
	if c < 0 {
		return byGPU
	}
	return min(c, byGPU)
}

// free is how many further replicas fit now, negative for no limit.
func (v *inventory) free(p *Pool) int {
	c := p.capacity()
	if c < 0 {
		return c
	}
	n := max(0, c-v.held[p.Hardware.ID])
	if len(p.GPUs) > 0 {
		n = min(n, len(v.freeGPUs(p))/p.Hardware.GPUCount)
	}
	return n
}

// freeGPUs are the pool's indices that nobody holds, lowest first.
func (v *inventory) freeGPUs(p *Pool) []int {
	var list []int
	for _, g := range p.GPUs {
		if v.gpus[g] == 0 {
			list = append(list, g)
		}
	}
	return list
}

// take holds a place of the hardware and returns its GPUs, the lowest free ones.
func (v *inventory) take(hardware string) (gpus []int, ok bool) {
	p := v.pool(hardware)
	if p == nil || v.free(p) == 0 {
		return nil, false
	}
	if len(p.GPUs) > 0 {
		gpus = slices.Clone(v.freeGPUs(p)[:p.Hardware.GPUCount])
	}
	v.hold(hardware, gpus)
	return gpus, true
}

// hold notes a place that is in use, whether or not it fits.
func (v *inventory) hold(hardware string, gpus []int) {
	v.held[hardware]++
	for _, g := range gpus {
		v.gpus[g]++
	}
}

// release gives a place back.
func (v *inventory) release(hardware string, gpus []int) {
	v.held[hardware]--
	for _, g := range gpus {
		v.gpus[g]--
	}
}

// overcommitted reports whether more is held than the hardware has now.
func (v *inventory) overcommitted(hardware string, gpus []int) bool {
	p := v.pool(hardware)
	if p == nil {
		return true
	}
	c := p.capacity()
	shared := slices.ContainsFunc(gpus, func(g int) bool { return v.gpus[g] > 1 || !slices.Contains(p.GPUs, g) })
	return shared || (c >= 0 && v.held[hardware] > c)
}

// list is the inventory as the port shows it.
func (v *inventory) list() []rollout.Hardware {
	all := make([]rollout.Hardware, 0, len(v.pools))
	for i := range v.pools {
		h := v.pools[i].Hardware
		h.Capacity, h.Free = v.pools[i].capacity(), v.free(&v.pools[i])
		all = append(all, h)
	}
	return all
}
