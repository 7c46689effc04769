package httpapi

import (
	"cmp"
	"net/http"

	"github.com/samya-db/samya/internal/access"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

var entityHandlers = map[string]handler{
	"ListEntities": (*api).listEntities,
	"CreateEntity": (*api).createEntity,
	"UpdateEntity": (*api).updateEntity,
	"DeleteEntity": (*api).deleteEntity,
	"MoveEntity":   (*api).moveEntity,

	"ReconcileEntity": (*api).reconcileEntity,
	"RescueEntity":    (*api).rescueEntity,
}

func (a *api) createEntity(w http.ResponseWriter, r *http.Request, _ string) error {
	in := &samyav1.CreateEntityRequest{}
	fs := fieldsOf(in)
	limit := fs.need("limit", "missing")
	if err := cmp.Or(a.read(w, r, fs), limit()); err != nil {
		return err
	}
	out, err := access.Call(r.Context(), in, a.Service.CreateEntity)
	if err != nil {
		return err
	}
	w.Header().Set("Location", entitiesPath+"/"+in.GetName())
	return writeJSON(w, http.StatusCreated, entityJSON(out.GetEntity()))
}

func (a *api) updateEntity(w http.ResponseWriter, r *http.Request, entity string) error {
	in := &samyav1.UpdateEntityRequest{Name: entity}
	fs := fieldsOf(in)
	limit := fs.need("limit", "missing")
	if err := cmp.Or(a.read(w, r, fs), limit()); err != nil {
		return err
	}
	return answer(w, r, http.StatusOK, in, a.Service.UpdateEntity, changedJSON)
}

func (a *api) deleteEntity(w http.ResponseWriter, r *http.Request, entity string) error {
	in := &samyav1.DeleteEntityRequest{Name: entity}
	if _, err := readQuery(r, in); err != nil {
		return err
	}
	if _, err := access.Call(r.Context(), in, a.Service.DeleteEntity); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *api) moveEntity(w http.ResponseWriter, r *http.Request, entity string) error {
	in := &samyav1.MoveEntityRequest{Name: entity}
	fs := fieldsOf(in)
	parent := fs.need("parent", "missing; empty for none")
	if err := cmp.Or(a.read(w, r, fs), parent()); err != nil {
		return err
	}
	return answer(w, r, http.StatusOK, in, a.Service.MoveEntity, movedEntityJSON)
}

func (a *api) reconcileEntity(w http.ResponseWriter, r *http.Request, entity string) error {
	in := &samyav1.ReconcileEntityRequest{Name: entity}
	fs := fieldsOf(in)
	inUse, cut := fs.need("in_use", "missing"), fs.need("cut", "missing")
	if err := cmp.Or(a.read(w, r, fs), inUse(), cut()); err != nil {
		return err
	}
	return answer(w, r, http.StatusOK, in, a.Service.ReconcileEntity, reconciledJSON)
}

func (a *api) rescueEntity(w http.ResponseWriter, r *http.Request, entity string) error {
	in := &samyav1.RescueEntityRequest{Name: entity}
	fs := fieldsOf(in)
	needs := []func() error{fs.need("site", "missing"), fs.need("generation", "missing"), fs.need("net", "missing"), fs.need("held", "missing")}
	err := a.read(w, r, fs)
	for _, need := range needs {
		err = cmp.Or(err, need())
	}
	if err != nil {
		return err
	}
	return answer(w, r, http.StatusOK, in, a.Service.RescueEntity, rescuedJSON)
}

func (a *api) listEntities(w http.ResponseWriter, r *http.Request, _ string) error {
	return find(w, r, &samyav1.ListEntitiesRequest{}, a.Service.ListEntities, pageJSON)
}
