package cut

// heap is a queue of vertices, the greatest key first. A vertex is in the queue at most
// once.
type heap struct {
	items []item
	at    []int32 // place of each vertex in items, or -1
}

type item struct {
	key int64
	v   int32
}

func (h *heap) empty() bool { return len(h.items) == 0 }

// set puts v in, or changes its key.
func (h *heap) set(v int32, key int64) {
	i := int(h.at[v])
	if i < 0 {
		h.items = append(h.items, item{key, v})
		h.rise(len(h.items) - 1)
		return
	}
	old := h.items[i].key
	h.items[i].key = key
	if key > old {
		h.rise(i)
	} else if key < old {
		h.sink(i)
	}
}

// pop takes the first vertex out.
func (h *heap) pop() (v int32, key int64) {
	top := h.items[0]
	h.drop(0)
	return top.v, top.key
}

// remove takes v out, if it is in.
func (h *heap) remove(v int32) {
	if i := h.at[v]; i >= 0 {
		h.drop(int(i))
	}
}

func (h *heap) drop(i int) {
	h.at[h.items[i].v] = -1
	last := len(h.items) - 1
	it := h.items[last]
	h.items = h.items[:last]
	if i == last {
		return
	}
	h.items[i] = it
	h.at[it.v] = int32(i)
	h.rise(i)
	h.sink(int(h.at[it.v]))
}

// reset empties the queue.
func (h *heap) reset() {
	for _, it := range h.items {
		h.at[it.v] = -1
	}
	h.items = h.items[:0]
}

func (h *heap) rise(i int) {
	it := h.items[i]
	for i > 0 {
		up := (i - 1) / 2
		if h.items[up].key >= it.key {
			break
		}
		h.items[i] = h.items[up]
		h.at[h.items[i].v] = int32(i)
		i = up
	}
	h.items[i] = it
	h.at[it.v] = int32(i)
}

func (h *heap) sink(i int) {
	it := h.items[i]
	n := len(h.items)
	for {
		c := 2*i + 1
		if c >= n {
			break
		}
		if c+1 < n && h.items[c+1].key > h.items[c].key {
			c++
		}
		if h.items[c].key <= it.key {
			break
		}
		h.items[i] = h.items[c]
		h.at[h.items[i].v] = int32(i)
		i = c
	}
	h.items[i] = it
	h.at[it.v] = int32(i)
}
