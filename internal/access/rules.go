package access

import (
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionv1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// rule says which callers may call a method.
type rule struct {
	// Least is the least role that may call it.
	Least role
	// Whole: the method tells or changes something of all entities, so callers of some
	// entities may not call it.
	Whole bool
	// Sites: only other sites may call it, as their certificates name them.
	Sites bool
	// Change: a call is written to the audit log.
	Change bool
}

// The names of resources that are served over HTTP only.
const (
	// Metrics is /metrics.
	Metrics = "/http/metrics"
	// Alive is /livez, /readyz and the description of the API.
	Alive = "/http/alive"
)

// peerLink is the only method of the service between sites. The app manager does not
// import its package.
const peerLink = "/samya.peer.v1.PeerService/Link"

// rules has every method that any listener serves.
var rules = map[string]rule{
	samyav1.TokenService_Acquire_FullMethodName:     {Least: roleClient},
	samyav1.TokenService_Release_FullMethodName:     {Least: roleClient},
	samyav1.TokenService_RenewLease_FullMethodName:  {Least: roleClient},
	samyav1.TokenService_CommitLease_FullMethodName: {Least: roleClient},
	samyav1.TokenService_Batch_FullMethodName:       {Least: roleClient},
	samyav1.TokenService_Stream_FullMethodName:      {Least: roleClient},
	samyav1.TokenService_ListLeases_FullMethodName:  {Least: roleViewer},

	samyav1.EntityService_GetEntity_FullMethodName:    {Least: roleViewer},
	samyav1.EntityService_ListEntities_FullMethodName: {Least: roleViewer},
	samyav1.EntityService_WatchEntity_FullMethodName:  {Least: roleViewer},
	samyav1.EntityService_CreateEntity_FullMethodName: {Least: roleOperator, Change: true},
	samyav1.EntityService_UpdateEntity_FullMethodName: {Least: roleOperator, Change: true},
	samyav1.EntityService_DeleteEntity_FullMethodName: {Least: roleOperator, Change: true},
	// A move takes an entity out of a tree that the entity's name does not tell.
	samyav1.EntityService_MoveEntity_FullMethodName: {Least: roleOperator, Whole: true, Change: true},

	samyav1.ClusterService_ListSites_FullMethodName:   {Least: roleViewer},
	samyav1.ClusterService_GetMode_FullMethodName:     {Least: roleViewer},
	samyav1.ClusterService_GetForecast_FullMethodName: {Least: roleViewer},
	// Its answer names the most used entities.
	samyav1.ClusterService_InspectSites_FullMethodName: {Least: roleViewer, Whole: true},
	samyav1.ClusterService_SetMode_FullMethodName:      {Least: roleAdmin, Whole: true, Change: true},
	samyav1.ClusterService_SetForecast_FullMethodName:  {Least: roleAdmin, Whole: true, Change: true},

	peerLink: {Sites: true},

	// Load balancers call these without credentials.
	healthv1.Health_Check_FullMethodName: {},
	healthv1.Health_Watch_FullMethodName: {},
	healthv1.Health_List_FullMethodName:  {},

	reflectionv1.ServerReflection_ServerReflectionInfo_FullMethodName:      {Least: roleViewer},
	reflectionv1alpha.ServerReflection_ServerReflectionInfo_FullMethodName: {Least: roleViewer},

	Metrics: {Least: roleViewer, Whole: true},
	Alive:   {},
}
