package httpapi

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

func TestBodyThatBreaksOff(t *testing.T) {
	req := httptest.NewRequest(http.MethodPost, "/", io.MultiReader(strings.NewReader(`{"tok`), broken{}))
	if _, err := readBody(httptest.NewRecorder(), req, 100, nil); apierr.ReasonOf(err) != apierr.MalformedJSON {
		t.Errorf("got %v", err)
	}
	req = httptest.NewRequest(http.MethodPost, "/", io.MultiReader(strings.NewReader(strings.Repeat(" ", 101))))
	req.ContentLength = -1
	if _, err := readBody(httptest.NewRecorder(), req, 100, nil); apierr.ReasonOf(err) != apierr.BodyTooLarge {
		t.Errorf("got %v", err)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestParsePath(t *testing.T) {
	for _, c := range []struct {
		path   string
		res    string
		entity string
	}{
		{"/v1/entities/a/b/c", entityPath, "a/b/c"},
		{"/v1/entities/a%2fb", entityPath, "a/b"},
		{"/v1/entities/acquire", entityPath, "acquire"},
		{"/v1/entities/a:acquire", entityPath + ":acquire", "a"},
		{"/v1/entities/a/b:release", entityPath + ":release", "a/b"},
		{"/v1/entities/%61%3Arelease", entityPath + ":release", "a"},
		{"/v1/members", membersPath, ""},
		{"/v1/members/eu-1", membersPath + "/{name}", "eu-1"},
		{"/v1/members/eu%3Adrain", membersPath + "/{name}:drain", "eu"},
	} {
		res, entity, err := parsePath(c.path)
		if res != c.res || entity != c.entity || err != nil {
			t.Errorf("%s: %s %q %v", c.path, res, entity, err)
		}
	}
	for _, p := range []string{"", "/v1", "/v1/entitiesx", "/v1/entities/a:b:acquire", "/v1/entities/%zz", "/v1/entities/%00", "/V1/sites", "/v1/members/", "/v1/members/a/b", "/v1/members/eu:keep", "/v1/membersx"} {
		if _, _, err := parsePath(p); err == nil {
			t.Errorf("%s was taken", p)
		}
	}
}

// TestUnknownFigures: a figure that nobody has heard is null.
func TestUnknownFigures(t *testing.T) {
	line, err := json.Marshal(statusJSON(&samyav1.Entity{Name: "new"}, &samyav1.Usage{Shares: []*samyav1.Share{{Site: "au"}}}))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"in_transit":null,"complete":false`,
		`{"site":"au","left":null,"offered":null,"net":null,"waiting":null,"redistributions":null,"transfers":null,"age_ms":null,"known":false}`,
	} {
		if !strings.Contains(string(line), want) {
			t.Errorf("%s lacks %s", line, want)
		}
	}
}
