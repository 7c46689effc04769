package httpapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"

	"google.golang.org/protobuf/proto"

	"github.com/samya-db/samya/appmgr/grpcapi"
	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/internal/parts"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// resultJSON is the outcome of an operation of a batch; exactly one field is set.
type resultJSON struct {
	Acquire *moved          `json:"acquire,omitempty"`
	Release *moved          `json:"release,omitempty"`
	Error   *apierr.Problem `json:"error,omitempty"`
}

type resultsJSON struct {
	Results []resultJSON `json:"results"`
}

func (a *api) batch(w http.ResponseWriter, r *http.Request, _ string) error {
	var in *samyav1.BatchRequest
	var made []grpcapi.Operated
	if err := a.readBodyOf(w, r, a.MaxBulk, func(body []byte) (err error) {
		in, made, err = decodeBatch(body)
		return err
	}); err != nil {
		return err
	}
	if in.GetAtomic() {
		return a.batchAtomic(w, r, in, made)
	}
	if err := access.Permit(r.Context(), in); err != nil {
		return err
	}
	operations := in.GetOperations()
	a.Service.DoAll(r.Context(), "http", operations, made)
	answer := resultsJSON{Results: make([]resultJSON, len(made))}
	for i, o := range made {
		switch into := &answer.Results[i]; {
		case o.Err != nil:
			into.Error = new(apierr.From(o.Err).Problem(r.URL.EscapedPath()))
		case o.Acquire != nil:
			into.Acquire = acquiredJSON(operations[i].GetAcquire().GetEntity(), o.Acquire)
		default:
			into.Release = releasedJSON(operations[i].GetRelease().GetEntity(), o.Release)
		}
	}
	return writeJSON(w, http.StatusOK, answer)
}

// grantedJSON is the answer to an atomic batch.
type grantedJSON struct {
	Results   []partJSON `json:"results"`
	RequestID string     `json:"request_id"`
	Site      string     `json:"site"`
}

// partJSON is the tokens granted of an entity.
type partJSON struct {
	Acquire struct {
		Entity string `json:"entity"`
		Tokens int64  `json:"tokens"`
	} `json:"acquire"`
}

// batchAtomic makes an atomic batch. The whole batch fails if an operation is malformed.
func (a *api) batchAtomic(w http.ResponseWriter, r *http.Request, in *samyav1.BatchRequest, made []grpcapi.Operated) error {
	var faults []apierr.Violation
	for i := range made {
		if made[i].Err == nil {
			continue
		}
		e := apierr.From(made[i].Err)
		if e.Reason != apierr.InvalidField {
			return e
		}
		faults = append(faults, e.Violations...)
	}
	if len(faults) > 0 {
		return apierr.InvalidFields(faults...)
	}
	if err := parts.Check(in); err != nil {
		return apierr.FromName(err)
	}
	out, err := access.Call(r.Context(), in, a.Service.AcquireAll)
	if err != nil {
		return err
	}
	answer := grantedJSON{Results: make([]partJSON, len(out.GetResults())), RequestID: out.GetRequestId(), Site: out.GetSite()}
	for i, result := range out.GetResults() {
		part := &answer.Results[i].Acquire
		part.Entity, part.Tokens = in.GetOperations()[i].GetAcquire().GetEntity(), result.GetAcquire().GetTokens()
	}
	return writeJSON(w, http.StatusOK, answer)
}

// decodeBatch reads the body of a batch. A malformed operation has its error in made; err
// concerns the body as a whole.
func decodeBatch(body []byte) (in *samyav1.BatchRequest, made []grpcapi.Operated, err error) {
	in = &samyav1.BatchRequest{}
	fs := fieldsOf(in)
	fs["operations"] = func(v any) (err error) {
		in.Operations, made, err = decodeOperations(v)
		return err
	}
	operations := fs.need("operations")
	err = cmp.Or(decodeJSON(body, fs), operations())
	if err == nil && !in.GetAtomic() {
		// Each operation fails by itself.
		if fault := parts.Check(in); fault != nil {
			err = apierr.FromName(fault)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	return in, made, nil
}

// decodeOperations reads the operations of a batch.
func decodeOperations(v any) (operations []*samyav1.Operation, made []grpcapi.Operated, err error) {
	raw, ok := v.(nested)
	if !ok || raw[0] != '[' {
		return nil, nil, &name.Error{Field: "operations", Problem: "must be an array, not " + kind(v)}
	}
	var all []json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, nil, &name.Error{Field: "operations", Problem: "must be an array"}
	}
	if err := name.Operations("operations", len(all)); err != nil {
		return nil, nil, err
	}
	operations, made = make([]*samyav1.Operation, len(all)), make([]grpcapi.Operated, len(all))
	for i, raw := range all {
		var err error
		if operations[i], err = decodeOperation(raw); err != nil {
			made[i].Err = apierr.From(err).Within(fmt.Sprintf("operations[%d].", i))
		}
	}
	return operations, made, nil
}

// decodeOperation reads an operation, which is valid JSON.
func decodeOperation(raw []byte) (*samyav1.Operation, error) {
	if raw = bytes.TrimSpace(raw); raw[0] != '{' {
		return nil, apierr.Invalid("operation", "must be an object")
	}
	var acquire, release []byte
	if err := decodeJSON(raw, fields{"acquire": part("acquire", &acquire), "release": part("release", &release)}); err != nil {
		return nil, err
	}
	switch {
	case acquire != nil && release != nil:
		return nil, apierr.Invalid("operation", "has an acquire and a release, must have one of them")
	case acquire != nil:
		in := &samyav1.AcquireRequest{}
		err := decodePart("acquire", acquire, in, func() error { return acquireLacks(in) })
		return &samyav1.Operation{Operation: &samyav1.Operation_Acquire{Acquire: in}}, err
	case release != nil:
		in := &samyav1.ReleaseRequest{}
		err := decodePart("release", release, in, func() error { return releaseLacks(in) })
		return &samyav1.Operation{Operation: &samyav1.Operation_Release{Release: in}}, err
	}
	return nil, apierr.Invalid("operation", "missing: an acquire or a release")
}

// part stores an object in into without decoding it.
func part(key string, into *[]byte) field {
	return func(t any) error {
		raw, ok := t.(nested)
		if !ok || raw[0] != '{' {
			return &name.Error{Field: key, Problem: "must be an object, not " + kind(t)}
		}
		*into = raw
		return nil
	}
}

// decodePart reads the acquire or release of an operation into in.
func decodePart(key string, raw []byte, in proto.Message, lacks func() error) error {
	if err := cmp.Or(decodeJSON(raw, fieldsOf(in)), lacks()); err != nil {
		return apierr.From(err).Within(key + ".")
	}
	return nil
}
