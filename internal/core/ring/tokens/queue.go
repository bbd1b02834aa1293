package tokens

// queue gives the value of greatest weight first. It is a binary heap that moves its items exactly
// as java.util.PriorityQueue does, so that among equal weights it gives the value that Cassandra
// would get. (The standard library's heap does so too, but allocates for each item.)
type queue[T any] []weighted[T]

// weighted is a value in a queue.
type weighted[T any] struct {
	weight float64
	value  T
}

func (q queue[T]) empty() bool { return len(q) == 0 }

// peek is the item that pop would give; the queue must not be empty.
func (q queue[T]) peek() weighted[T] { return q[0] }

func (q *queue[T]) push(weight float64, value T) {
	item := weighted[T]{weight, value}
	at := len(*q)
	*q = append(*q, item)
	for at > 0 {
		parent := (at - 1) / 2
		if weight <= (*q)[parent].weight {
			break
		}
		(*q)[at] = (*q)[parent]
		at = parent
	}
	(*q)[at] = item
}

// pop takes the item of greatest weight; the queue must not be empty.
func (q *queue[T]) pop() weighted[T] {
	items := *q
	greatest, last := items[0], items[len(items)-1]
	items = items[:len(items)-1]
	*q = items
	at := 0
	for child := 1; child < len(items); child = 2*at + 1 {
		if right := child + 1; right < len(items) && items[right].weight > items[child].weight {
			child = right
		}
		if last.weight >= items[child].weight {
			break
		}
		items[at] = items[child]
		at = child
	}
	if len(items) > 0 {
		items[at] = last
	}
	return greatest
}
