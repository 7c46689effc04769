package httpapi

import (
	"cmp"
	"net/http"

	"github.com/samya-db/samya/appmgr/grpcapi"
	"github.com/samya-db/samya/internal/access"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

var entityHandlers = map[string]handler{
	"ListEntities": byQuery((*grpcapi.Service).ListEntities, pageJSON),
	"CreateEntity": (*api).createEntity,
	"UpdateEntity": byBody((*grpcapi.Service).UpdateEntity, changedJSON, "limit"),
	"DeleteEntity": (*api).deleteEntity,
	"MoveEntity":   byBody((*grpcapi.Service).MoveEntity, movedEntityJSON, "parent"),

	"ReconcileEntity": byBody((*grpcapi.Service).ReconcileEntity, reconciledJSON, "in_use", "cut"),
	"RescueEntity":    byBody((*grpcapi.Service).RescueEntity, rescuedJSON, "site", "generation", "net", "held"),
	"ResetEntity":     byBody((*grpcapi.Service).ResetEntity, resetJSON),
}

func (a *api) createEntity(w http.ResponseWriter, r *http.Request, _ string) error {
	in := &samyav1.CreateEntityRequest{}
	fs := fieldsOf(in)
	limit := fs.need("limit")
	if err := cmp.Or(a.read(w, r, fs), limit()); err != nil {
		return err
	}
	out, err := access.Call(r.Context(), in, a.Service.CreateEntity)
	if err != nil {
		return err
	}
	if in.GetDryRun() {
		return writeJSON(w, http.StatusOK, created{entityJSON(out.GetEntity()), dryRunJSON(out.GetDryRun())})
	}
	w.Header().Set("Location", entitiesPath+"/"+in.GetName())
	return writeJSON(w, http.StatusCreated, entityJSON(out.GetEntity()))
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
