package failuretest

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/samya-db/samya/devcluster/ledger"
)

// A quota as a whole is not linearizable, by design: a site refuses tokens that another
// site could grant. A site's share of an entity is linearizable while no redistribution
// moves tokens. So porcupine judges histories of a single-site cluster, a closed system:
// the history alone determines the tokens left. The ledger's sweep checks for over-grants
// while tokens move.

// linearLimit is the limit of each entity of a history: low, so that acquires
// are refused as well.
const linearLimit = 25

// call is the invocation of an operation on an entity.
type call struct {
	entity string
	kind   callKind
	tokens int64
}

type callKind uint8

const (
	callAcquire = callKind(ledger.Acquire)
	callRelease = callKind(ledger.Release)
	callRead    = callKind(2)
)

// outcome is the answer to a client.
type outcome struct {
	// unknown: no answer, ever. The operation returns at the end of time.
	unknown bool
	// refused: there were not enough tokens.
	refused bool
	// left is the tokens left at the site right after the operation; net is the acquired
	// tokens, as a read reports them.
	left, net int64
}

// atInfinity is the time at which an operation of unknown outcome returns.
const atInfinity = math.MaxInt64

// quota is the sequential specification: the state is the tokens left. An operation of
// unknown outcome that was never executed takes effect after all others: at the end any
// effect is as good as none.
var quota = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byEntity := make(map[string][]porcupine.Operation)
		for _, op := range history {
			name := op.Input.(call).entity
			byEntity[name] = append(byEntity[name], op)
		}
		var parts [][]porcupine.Operation
		for _, part := range byEntity {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return int64(linearLimit) },
	Step: func(state, input, output any) (bool, any) {
		left, in, out := state.(int64), input.(call), output.(outcome)
		switch {
		case in.kind == callRead:
			return out.unknown || out.left == left && out.net == linearLimit-left, left
		case in.kind == callRelease:
			return out.unknown || out.left == left+in.tokens, left + in.tokens
		case out.unknown && left < in.tokens:
			return true, left
		case out.refused:
			return left < in.tokens, left
		default:
			return left >= in.tokens && (out.unknown || out.left == left-in.tokens), left - in.tokens
		}
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
}

// judge checks a history. Running out of time is no verdict.
func judge(history []porcupine.Operation) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(quota, history, patience)
}

func TestLinearizabilityChecker(t *testing.T) {
	// op makes an operation from its invocation, its return, the request and the answer.
	op := func(from, to int64, kind callKind, tokens int64, out outcome) porcupine.Operation {
		return porcupine.Operation{Call: from, Return: to, Input: call{entity: "e", kind: kind, tokens: tokens}, Output: out}
	}
	left := func(n int64) outcome { return outcome{left: n, net: linearLimit - n} }
	lost := outcome{unknown: true}
	no := outcome{refused: true}
	const full = linearLimit
	tests := []struct {
		name    string
		history []porcupine.Operation
		want    porcupine.CheckResult
	}{
		{"nothing", nil, porcupine.Ok},
		{"one after another", []porcupine.Operation{
			op(1, 2, callAcquire, 5, left(full-5)), op(3, 4, callRead, 0, left(full-5)), op(5, 6, callRelease, 2, left(full-3)),
		}, porcupine.Ok},
		{"two at once, in either order", []porcupine.Operation{
			op(1, 9, callAcquire, 5, left(full-8)), op(2, 8, callAcquire, 3, left(full-3)), op(10, 11, callRead, 0, left(full-8)),
		}, porcupine.Ok},
		{"refused where there is too little", []porcupine.Operation{
			op(1, 2, callAcquire, full, left(0)), op(3, 4, callAcquire, 1, no),
		}, porcupine.Ok},
		{"an unknown acquire was carried out", []porcupine.Operation{
			op(1, atInfinity, callAcquire, 5, lost), op(3, 4, callRead, 0, left(full-5)),
		}, porcupine.Ok},
		{"an unknown acquire was not, or later", []porcupine.Operation{
			op(1, atInfinity, callAcquire, 5, lost), op(3, 4, callRead, 0, left(full)), op(5, 6, callAcquire, full, left(0)),
		}, porcupine.Ok},
		{"an unknown release serves an acquire", []porcupine.Operation{
			op(1, 2, callAcquire, full, left(0)), op(3, atInfinity, callRelease, 4, lost), op(5, 6, callAcquire, 4, left(0)),
		}, porcupine.Ok},
		{"entities are apart", []porcupine.Operation{
			op(1, 2, callAcquire, full, left(0)),
			{Call: 3, Return: 4, Input: call{entity: "f", kind: callAcquire, tokens: 1}, Output: left(full - 1)},
		}, porcupine.Ok},

		{"an acquire is lost", []porcupine.Operation{
			op(1, 2, callAcquire, 5, left(full-5)), op(3, 4, callRead, 0, left(full)),
		}, porcupine.Illegal},
		{"an acquire is carried out twice", []porcupine.Operation{
			op(1, 2, callAcquire, 5, left(full-5)), op(3, 4, callRead, 0, left(full-10)),
		}, porcupine.Illegal},
		{"a release is lost", []porcupine.Operation{
			op(1, 2, callAcquire, 5, left(full-5)), op(3, 4, callRelease, 5, left(full)), op(5, 6, callAcquire, 1, left(full-6)),
		}, porcupine.Illegal},
		{"more is granted than there is", []porcupine.Operation{
			op(1, 2, callAcquire, full, left(0)), op(3, 4, callAcquire, 1, left(-1)),
		}, porcupine.Illegal},
		{"two grants of the last tokens", []porcupine.Operation{
			op(1, 9, callAcquire, full, left(0)), op(2, 8, callAcquire, full, left(0)),
		}, porcupine.Illegal},
		{"refused although there is enough", []porcupine.Operation{
			op(1, 2, callAcquire, 5, left(full-5)), op(3, 4, callAcquire, 1, no),
		}, porcupine.Illegal},
		{"a read of the past", []porcupine.Operation{
			op(1, 2, callAcquire, 5, left(full-5)), op(3, 4, callAcquire, 5, left(full-10)), op(5, 6, callRead, 0, left(full-5)),
		}, porcupine.Illegal},
		{"a read that does not add up", []porcupine.Operation{
			op(1, 2, callRead, 0, outcome{left: full, net: 1}),
		}, porcupine.Illegal},
		{"an effect before its invocation", []porcupine.Operation{
			op(1, 2, callRead, 0, left(full-5)), op(3, 4, callAcquire, 5, left(full-5)),
		}, porcupine.Illegal},
		{"an unknown acquire comes and goes", []porcupine.Operation{
			op(1, atInfinity, callAcquire, 5, lost), op(3, 4, callRead, 0, left(full-5)), op(5, 6, callRead, 0, left(full)),
		}, porcupine.Illegal},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := porcupine.CheckOperationsTimeout(quota, test.history, time.Minute); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}
