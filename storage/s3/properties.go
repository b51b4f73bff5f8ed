package s3

import (
	"strconv"
	"time"
)

// OptionsOf reads Iceberg's properties: what get finds under the first of some names, and from operator alone what bounds
// retries. Numbers that are none count as missing. Keys are the caller's to set.
func OptionsOf(operator map[string]string, get func(names ...string) string) Options {
	whole := func(name string) int {
		n, err := strconv.Atoi(operator[name])
		if err != nil {
			return 0
		}
		return n
	}
	o := Options{
		Endpoint: get("s3.endpoint"), PathStyle: get("s3.path-style-access") == "true",
		Region: get("client.region", "s3.region"), CrossRegion: get("s3.cross-region-access-enabled") == "true",
		MinWait: time.Duration(whole("s3.retry.min-wait-ms")) * time.Millisecond, MaxWait: time.Duration(whole("s3.retry.max-wait-ms")) * time.Millisecond,
	}
	if operator["s3.retry.num-retries"] != "" {
		if o.Retries = whole("s3.retry.num-retries"); o.Retries == 0 {
			o.Retries = -1
		}
	}
	return o
}

// PropertyNames are the names that OptionsOf reads.
var PropertyNames = []string{
	"client.region", "s3.region", "s3.endpoint", "s3.path-style-access", "s3.cross-region-access-enabled",
	"s3.retry.num-retries", "s3.retry.min-wait-ms", "s3.retry.max-wait-ms",
}
