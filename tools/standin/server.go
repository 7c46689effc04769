package main

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// server answers for a provider. OpenTofu calls none of the methods missing here, since
// the provider offers nothing that needs them.
type server struct {
	tfprotov6.ProviderServer
	schema *tfprotov6.GetProviderSchemaResponse
}

func newServer(p *provider) (*server, error) {
	s := &server{schema: &tfprotov6.GetProviderSchemaResponse{
		ServerCapabilities: &tfprotov6.ServerCapabilities{},
		ResourceSchemas:    make(map[string]*tfprotov6.Schema), DataSourceSchemas: make(map[string]*tfprotov6.Schema),
	}}
	var err error
	if s.schema.Provider, err = p.Config.schema(); err != nil {
		return nil, fmt.Errorf("the provider's own: %w", err)
	}
	for kind, b := range p.Resources {
		if s.schema.ResourceSchemas[kind], err = b.schema(); err != nil {
			return nil, fmt.Errorf("%s: %w", kind, err)
		}
	}
	for kind, b := range p.Data {
		if s.schema.DataSourceSchemas[kind], err = b.schema(); err != nil {
			return nil, fmt.Errorf("%s: %w", kind, err)
		}
	}
	return s, nil
}

func (s *server) GetProviderSchema(context.Context, *tfprotov6.GetProviderSchemaRequest) (*tfprotov6.GetProviderSchemaResponse, error) {
	return s.schema, nil
}

func (s *server) ValidateProviderConfig(_ context.Context, r *tfprotov6.ValidateProviderConfigRequest) (*tfprotov6.ValidateProviderConfigResponse, error) {
	return &tfprotov6.ValidateProviderConfigResponse{PreparedConfig: r.Config}, nil
}

func (s *server) ConfigureProvider(context.Context, *tfprotov6.ConfigureProviderRequest) (*tfprotov6.ConfigureProviderResponse, error) {
	return &tfprotov6.ConfigureProviderResponse{}, nil
}

func (s *server) StopProvider(context.Context, *tfprotov6.StopProviderRequest) (*tfprotov6.StopProviderResponse, error) {
	return &tfprotov6.StopProviderResponse{}, nil
}

func (s *server) UpgradeResourceState(_ context.Context, r *tfprotov6.UpgradeResourceStateRequest) (*tfprotov6.UpgradeResourceStateResponse, error) {
	t := s.schema.ResourceSchemas[r.TypeName].ValueType()
	v, err := r.RawState.Unmarshal(t)
	if err != nil {
		return nil, err
	}
	out, err := tfprotov6.NewDynamicValue(t, v)
	return &tfprotov6.UpgradeResourceStateResponse{UpgradedState: &out}, err
}

func (s *server) ReadResource(_ context.Context, r *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	return &tfprotov6.ReadResourceResponse{NewState: r.CurrentState, Private: r.Private}, nil
}

// PlanResourceChange marks the attributes as unknown that the configuration does not
// set.
func (s *server) PlanResourceChange(_ context.Context, r *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	schema := s.schema.ResourceSchemas[r.TypeName]
	t := schema.ValueType()
	v, err := r.ProposedNewState.Unmarshal(t)
	if err != nil {
		return nil, err
	}
	if v.IsNull() {
		return &tfprotov6.PlanResourceChangeResponse{PlannedState: r.ProposedNewState}, nil
	}
	if v, err = fill(schema.Block, v, func(_ string, t tftypes.Type) tftypes.Value { return tftypes.NewValue(t, tftypes.UnknownValue) }); err != nil {
		return nil, err
	}
	out, err := tfprotov6.NewDynamicValue(t, v)
	return &tfprotov6.PlanResourceChangeResponse{PlannedState: &out}, err
}

// ApplyResourceChange makes up values for the unknown attributes.
func (s *server) ApplyResourceChange(_ context.Context, r *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	schema := s.schema.ResourceSchemas[r.TypeName]
	t := schema.ValueType()
	v, err := r.PlannedState.Unmarshal(t)
	if err != nil {
		return nil, err
	}
	if v.IsNull() {
		return &tfprotov6.ApplyResourceChangeResponse{NewState: r.PlannedState}, nil
	}
	if v, err = fill(schema.Block, v, invent(r.TypeName, next)); err != nil {
		return nil, err
	}
	out, err := tfprotov6.NewDynamicValue(t, v)
	return &tfprotov6.ApplyResourceChangeResponse{NewState: &out}, err
}

// ReadDataSource makes up values for the attributes that the configuration does not set.
func (s *server) ReadDataSource(_ context.Context, r *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	schema := s.schema.DataSourceSchemas[r.TypeName]
	t := schema.ValueType()
	v, err := r.Config.Unmarshal(t)
	if err != nil {
		return nil, err
	}
	if v, err = fill(schema.Block, v, invent(r.TypeName, one)); err != nil {
		return nil, err
	}
	out, err := tfprotov6.NewDynamicValue(t, v)
	return &tfprotov6.ReadDataSourceResponse{State: &out}, err
}
