package store_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/journal"
	"github.com/samya-db/samya/site/store"
)

// TestFullHasEveryField: the round trip is of all fields of all records. A field that
// full does not set may be lost unseen.
func TestFullHasEveryField(t *testing.T) {
	// Fields that only remove records are not stored.
	removals := []string{"Deleted", "SettledClaims", "EndedLeases", "ForgetBlocks", "ForgetChanges"}
	// The stored form of records has nothing that the records lack.
	forms := []string{"Packed", "Runs"}
	set := make(map[string]bool)
	var look func(at string, v reflect.Value)
	look = func(at string, v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() {
				look(at, v.Elem())
			}
		case reflect.Slice, reflect.Array:
			for i := range v.Len() {
				look(at, v.Index(i))
			}
		case reflect.Struct:
			for i := range v.NumField() {
				f := v.Type().Field(i)
				if !f.IsExported() || at == "Records" && slices.Contains(removals, f.Name) || v.Type().Name() == "Block" && slices.Contains(forms, f.Name) {
					continue
				}
				name := v.Type().Name() + "." + f.Name
				set[name] = set[name] || !v.Field(i).IsZero()
				look(v.Type().Name(), v.Field(i))
			}
		default:
		}
	}
	look("Records", reflect.ValueOf(*full()))
	for name, is := range set {
		if !is {
			t.Errorf("%s is never set", name)
		}
	}
}

// TestEachFieldAlone: a field of an entity is stored also where all others are zero.
func TestEachFieldAlone(t *testing.T) {
	whole := full().Entities[0]
	var r stored.Records
	var alone func(at string, path []int, from reflect.Value)
	alone = func(at string, path []int, from reflect.Value) {
		for i := range from.NumField() {
			name, to := at+"/"+from.Type().Field(i).Name, append(slices.Clip(path), i)
			if from.Field(i).Kind() == reflect.Struct {
				alone(name, to, from.Field(i))
				continue
			}
			e := stored.Entity{}
			reflect.ValueOf(&e).Elem().FieldByIndex(to).Set(from.Field(i))
			e.Name = name
			r.Entities = append(r.Entities, e)
		}
	}
	alone("", nil, reflect.ValueOf(whole))
	slices.SortFunc(r.Entities, func(a, b stored.Entity) int { return strings.Compare(a.Name, b.Name) })
	s, err := store.OpenOn(journal.OSDir(t.TempDir()), newMaps(), options(""))
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, s)
	if err := s.Commit(&r); err != nil {
		t.Fatal(err)
	}
	got := load(t, s).Entities
	if len(got) != len(r.Entities) || len(got) < 20 {
		t.Fatalf("%d entities are found, want %d", len(got), len(r.Entities))
	}
	for i := range got {
		if !reflect.DeepEqual(got[i], r.Entities[i]) {
			t.Errorf("got %+v, want %+v", got[i], r.Entities[i])
		}
	}
}
