// Package parts checks the operations of batches, so that every process has the same
// bounds. It does not check whether the operations can be done.
package parts

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// Field returns the name of the field of a batch that holds the fields of its operation
// i, with a dot at the end.
func Field(i int, op *samyav1.Operation) string {
	switch op.GetOperation().(type) {
	case *samyav1.Operation_Acquire:
		return fmt.Sprintf("operations[%d].acquire.", i)
	case *samyav1.Operation_Release:
		return fmt.Sprintf("operations[%d].release.", i)
	}
	return fmt.Sprintf("operations[%d].", i)
}

// Check checks the rules for a batch as a whole: the number of its operations, and the
// fields of each operation of an atomic batch. Its error is made of errors of package
// name.
func Check(r *samyav1.BatchRequest) error {
	errs := []error{name.Operations("operations", len(r.GetOperations()))}
	if !r.GetAtomic() {
		return errors.Join(append(errs, alone(r))...)
	}
	if errs[0] != nil {
		return errs[0]
	}
	sum := int64(0)
	for i, op := range r.GetOperations() {
		if a := op.GetAcquire(); a == nil {
			errs = append(errs, &name.Error{Field: Field(i, op) + "operation", Problem: "must be an acquire, the batch is atomic"})
		} else {
			errs = append(errs, part(a, Field(i, op)))
			sum += min(a.GetTokens(), name.MaxTokens)
		}
	}
	err := errors.Join(errs...)
	if err == nil && sum > name.MaxTokens {
		return &name.Error{Field: "operations", Problem: fmt.Sprintf("%d tokens in all, at most %d", sum, name.MaxTokens)}
	}
	return err
}

// alone checks that a batch that is not atomic has no fields of the whole batch.
func alone(r *samyav1.BatchRequest) error {
	return without(r, "", "only of an atomic batch; others say it of each operation", "operations", "atomic")
}

// part checks an acquire of an atomic batch. App managers set its relay.
func part(a *samyav1.AcquireRequest, prefix string) error {
	return errors.Join(
		name.Entity(prefix+"entity", a.GetEntity()), name.Tokens(prefix+"tokens", a.GetTokens()),
		without(a, prefix, "not in an atomic batch", "entity", "tokens", "relay"),
	)
}

// without checks that a message has no fields but some, so that fields to come are refused
// too. Its errors are in the order of the fields' names.
func without(m proto.Message, prefix, problem string, but ...protoreflect.Name) error {
	var errs []error
	m.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		if !slices.Contains(but, f.Name()) {
			errs = append(errs, &name.Error{Field: prefix + string(f.Name()), Problem: problem})
		}
		return true
	})
	slices.SortFunc(errs, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// Of makes an operation of an atomic batch. A server without atomic batches would take it
// for a separate acquire, but refuses that, because it has a relay and no id.
func Of(entity string, tokens int64) *samyav1.Operation {
	return &samyav1.Operation{Operation: &samyav1.Operation_Acquire{Acquire: &samyav1.AcquireRequest{
		Entity: entity, Tokens: tokens, Relay: 1,
	}}}
}

// Foreign reports whether a response is not an answer to an atomic batch: the server has
// no atomic batches, or answers another request.
func Foreign(r *samyav1.BatchRequest, resp *samyav1.BatchResponse) bool {
	if resp.GetSite() == "" || len(resp.GetResults()) != len(r.GetOperations()) {
		return true
	}
	for i, op := range r.GetOperations() {
		if resp.GetResults()[i].GetAcquire().GetTokens() != op.GetAcquire().GetTokens() {
			return true
		}
	}
	return false
}
