// Package glue finds tables in the AWS Glue Data Catalog: databases are namespaces, and a table whose parameters say ICEBERG names
// its metadata file in them.
//
// It only reads. An Index is safe for concurrent use.
package glue

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/glue"
	"github.com/aws/aws-sdk-go-v2/service/glue/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/credentials"
	"github.com/skua-db/skua/fault"
)

// Index is a Glue catalog.
type Index struct {
	client *glue.Client
	id     *string // of the catalog; nil: the account's own
}

// Properties are the names of the properties that Open reads beside those of keys and region.
var Properties = []string{"glue.id", "glue.endpoint", "glue.region", "glue.access-key-id", "glue.secret-access-key", "glue.session-token"}

// Open makes a client, without connecting. Keys are those of glue.access-key-id, or the catalog's.
func Open(p map[string]string, ambient credentials.Provider) (*Index, error) {
	own := map[string]string{}
	for name, value := range p {
		own[name] = value
	}
	if p["glue.access-key-id"] != "" {
		own["s3.access-key-id"], own["s3.secret-access-key"], own["s3.session-token"] = p["glue.access-key-id"], p["glue.secret-access-key"], p["glue.session-token"]
	}
	keys, ok, err := credentials.Configured(own, ambient)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fault.New(fault.Invalid, "a glue catalog needs keys: s3.access-key-id and s3.secret-access-key (or glue.*), client.assume-role.arn, or ambient-fallback: true")
	}
	o := glue.Options{Region: p["glue.region"], Credentials: credentials.SDK(keys)}
	if o.Region == "" {
		o.Region = p["client.region"]
	}
	if o.Region == "" {
		return nil, fault.New(fault.Invalid, "a glue catalog needs client.region")
	}
	if e := p["glue.endpoint"]; e != "" {
		o.BaseEndpoint = &e
	}
	i := &Index{client: glue.New(o)}
	if id := p["glue.id"]; id != "" {
		i.id = &id
	}
	return i, nil
}

// Close implements located.Index.
func (i *Index) Close() error { return nil }

// Namespaces implements located.Index: databases have no levels.
func (i *Index) Namespaces(ctx context.Context, parent catalog.Namespace) ([]catalog.Namespace, error) {
	if len(parent) > 0 {
		return nil, i.database(ctx, parent)
	}
	var out []catalog.Namespace
	pages := glue.NewGetDatabasesPaginator(i.client, &glue.GetDatabasesInput{CatalogId: i.id})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, failure(ctx, err)
		}
		for _, d := range page.DatabaseList {
			if d.Name != nil {
				out = append(out, catalog.Namespace{*d.Name})
			}
		}
	}
	slices.SortFunc(out, func(a, b catalog.Namespace) int { return strings.Compare(a[0], b[0]) })
	return out, nil
}

// database fails when a namespace does not exist.
func (i *Index) database(ctx context.Context, ns catalog.Namespace) error {
	missing := fault.WithID(fault.NotFound, "SCHEMA_NOT_FOUND", "namespace %q does not exist", ns.String())
	if len(ns) != 1 {
		return missing
	}
	_, err := i.client.GetDatabase(ctx, &glue.GetDatabaseInput{CatalogId: i.id, Name: &ns[0]})
	if err = failure(ctx, err); errors.Is(err, fault.NotFound) {
		return missing
	}
	return err
}

// Tables implements located.Index. Tables of other formats are left out.
func (i *Index) Tables(ctx context.Context, ns catalog.Namespace) ([]string, error) {
	if err := i.database(ctx, ns); err != nil {
		return nil, err
	}
	var out []string
	pages := glue.NewGetTablesPaginator(i.client, &glue.GetTablesInput{CatalogId: i.id, DatabaseName: &ns[0]})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, failure(ctx, err)
		}
		for _, t := range page.TableList {
			if t.Name != nil && isIceberg(&t) {
				out = append(out, *t.Name)
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

func isIceberg(t *types.Table) bool { return strings.EqualFold(t.Parameters["table_type"], "iceberg") }

// Find implements located.Index.
func (i *Index) Find(ctx context.Context, ns catalog.Namespace, name string) (string, error) {
	missing := fault.WithID(fault.NotFound, "TABLE_NOT_FOUND", "table %s.%s does not exist", ns, name)
	if len(ns) != 1 {
		return "", missing
	}
	out, err := i.client.GetTable(ctx, &glue.GetTableInput{CatalogId: i.id, DatabaseName: &ns[0], Name: &name})
	if err = failure(ctx, err); errors.Is(err, fault.NotFound) {
		return "", missing
	}
	if err != nil {
		return "", err
	}
	if out.Table == nil || !isIceberg(out.Table) {
		return "", fault.New(fault.Unsupported, "table %s.%s is not an Iceberg table: its parameter table_type does not say so", ns, name)
	}
	if file := out.Table.Parameters["metadata_location"]; file != "" {
		return file, nil
	}
	return "", fault.New(fault.Corrupt, "table %s.%s has no parameter metadata_location", ns, name)
}

func failure(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var api smithy.APIError
	var answer *smithyhttp.ResponseError
	status := 0
	if errors.As(err, &answer) {
		status = answer.HTTPStatusCode()
	}
	if !errors.As(err, &api) {
		if k := fault.KindOf(err); k != fault.Internal { // of the keys
			return err
		}
		return fault.New(fault.Unavailable, "Glue cannot be asked: %v", err)
	}
	switch code := api.ErrorCode(); {
	case code == "EntityNotFoundException":
		return fault.New(fault.NotFound, "%s", api.ErrorMessage())
	case code == "AccessDeniedException", code == "UnrecognizedClientException", code == "InvalidSignatureException", code == "ExpiredTokenException",
		status == http.StatusForbidden, status == http.StatusUnauthorized:
		return fault.New(fault.Denied, "Glue refuses the key: %s %s", code, api.ErrorMessage())
	default:
		return fault.New(fault.Unavailable, "Glue answers %s %s", code, api.ErrorMessage())
	}
}
