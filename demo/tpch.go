package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/apache/iceberg-go"
	"golang.org/x/sync/errgroup"
)

var (
	money  = iceberg.DecimalTypeOf(15, 2)
	long   = iceberg.PrimitiveTypes.Int64
	integ  = iceberg.PrimitiveTypes.Int32
	text   = iceberg.PrimitiveTypes.String
	date   = iceberg.PrimitiveTypes.Date
	stamp  = iceberg.PrimitiveTypes.Timestamp
	double = iceberg.PrimitiveTypes.Float64
)

// linesPerOrder is how many line items an order has on average: between one and seven.
const linesPerOrder = 4

// tpch makes the eight tables of TPC-H with rows of our own: the shapes, keys and value ranges are the benchmark's, the
// values are not.
func (m *maker) tpch(ctx context.Context) error {
	n := func(perUnit int) int { return max(1, int(float64(perUnit)*m.scale)) }
	suppliers, customers, parts, orders := n(10_000), n(150_000), n(200_000), n(1_500_000)
	first, last := day(1992, time.January, 1), day(1998, time.August, 2)
	ordered := func(order int) int { return first + pick(order, 40, last-first-151) }
	// A line belongs to order line/linesPerOrder; odd orders give some of their lines to the even one before.
	orderOf := func(line int) int { return line / linesPerOrder }
	shipped := func(i int) int { return ordered(orderOf(i)) + 1 + pick(i, 50, 121) }
	quantity := func(i int) int64 { return int64(1 + pick(i, 51, 50)) }
	partOf := func(i int) int { return pick(i, 52, parts) }
	priceOf := func(part int) int64 { return int64(90_000 + (part/10)%20_001 + 100*(part%1000)) }
	extended := func(i int) int64 { return quantity(i) * priceOf(partOf(i)) / 100 * 100 }
	nations := []string{"ALGERIA", "ARGENTINA", "BRAZIL", "CANADA", "EGYPT", "ETHIOPIA", "FRANCE", "GERMANY", "INDIA", "INDONESIA", "IRAN", "IRAQ", "JAPAN", "JORDAN", "KENYA", "MOROCCO", "MOZAMBIQUE", "PERU", "CHINA", "ROMANIA", "SAUDI ARABIA", "VIETNAM", "RUSSIA", "UNITED KINGDOM", "UNITED STATES"}
	regionOf := []int{0, 1, 1, 1, 4, 0, 3, 3, 2, 2, 4, 4, 2, 4, 0, 0, 0, 1, 2, 3, 4, 2, 3, 3, 1}
	regions := []string{"AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"}
	phone := func(column int) func(int) string {
		return func(i int) string {
			return fmt.Sprintf("%d-%03d-%03d-%04d", 10+pick(i, column, 25), pick(i, column+1, 1000), pick(i, column+2, 1000), pick(i, column+3, 10000))
		}
	}
	id := func(i int) int64 { return int64(i + 1) }
	tables := []spec{
		{name: "region", rows: 5, columns: []column{
			required("r_regionkey", long, longs(func(i int) int64 { return int64(i) })),
			required("r_name", text, texts(func(i int) string { return regions[i] })),
			optional("r_comment", text, texts(sentence(1))),
		}},
		{name: "nation", rows: len(nations), columns: []column{
			required("n_nationkey", long, longs(func(i int) int64 { return int64(i) })),
			required("n_name", text, texts(func(i int) string { return nations[i] })),
			required("n_regionkey", long, longs(func(i int) int64 { return int64(regionOf[i]) })),
			optional("n_comment", text, texts(sentence(2))),
		}},
		{name: "supplier", rows: suppliers, columns: []column{
			required("s_suppkey", long, longs(id)),
			required("s_name", text, texts(func(i int) string { return fmt.Sprintf("Supplier#%09d", i+1) })),
			required("s_address", text, texts(sentence(3))),
			required("s_nationkey", long, longs(func(i int) int64 { return int64(pick(i, 4, 25)) })),
			required("s_phone", text, texts(phone(5))),
			required("s_acctbal", money, cents(func(i int) int64 { return int64(pick(i, 9, 1_100_000)) - 100_000 })),
			optional("s_comment", text, texts(sentence(10))),
		}},
		{name: "customer", rows: customers, columns: []column{
			required("c_custkey", long, longs(id)),
			required("c_name", text, texts(func(i int) string { return fmt.Sprintf("Customer#%09d", i+1) })),
			required("c_address", text, texts(sentence(11))),
			required("c_nationkey", long, longs(func(i int) int64 { return int64(pick(i, 12, 25)) })),
			required("c_phone", text, texts(phone(13))),
			required("c_acctbal", money, cents(func(i int) int64 { return int64(pick(i, 17, 1_100_000)) - 100_000 })),
			required("c_mktsegment", text, texts(oneOf(18, "AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"))),
			optional("c_comment", text, texts(sentence(19))),
		}},
		{name: "part", rows: parts, columns: []column{
			required("p_partkey", long, longs(id)),
			required("p_name", text, texts(sentence(20))),
			required("p_mfgr", text, texts(func(i int) string { return fmt.Sprintf("Manufacturer#%d", 1+pick(i, 21, 5)) })),
			required("p_brand", text, texts(func(i int) string { return fmt.Sprintf("Brand#%d%d", 1+pick(i, 21, 5), 1+pick(i, 22, 5)) })),
			required("p_type", text, texts(func(i int) string {
				return oneOf(23, "STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO")(i) + " " +
					oneOf(24, "ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED")(i) + " " + oneOf(25, "TIN", "NICKEL", "BRASS", "STEEL", "COPPER")(i)
			})),
			required("p_size", integ, ints(func(i int) int { return 1 + pick(i, 26, 50) })),
			required("p_container", text, texts(func(i int) string {
				return oneOf(27, "SM", "LG", "MED", "JUMBO", "WRAP")(i) + " " + oneOf(28, "CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM")(i)
			})),
			required("p_retailprice", money, cents(priceOf)),
			optional("p_comment", text, texts(sentence(29))),
		}},
		{name: "partsupp", rows: parts * 4, columns: []column{
			required("ps_partkey", long, longs(func(i int) int64 { return int64(i/4 + 1) })),
			required("ps_suppkey", long, longs(func(i int) int64 { return int64((i/4+(i%4)*max(1, suppliers/4))%suppliers + 1) })),
			required("ps_availqty", integ, ints(func(i int) int { return 1 + pick(i, 30, 9999) })),
			required("ps_supplycost", money, cents(func(i int) int64 { return int64(100 + pick(i, 31, 99_900)) })),
			optional("ps_comment", text, texts(sentence(32))),
		}},
		{name: "orders", rows: orders, columns: []column{
			required("o_orderkey", long, longs(id)),
			required("o_custkey", long, longs(func(i int) int64 { return int64(1 + pick(i, 41, customers)) })),
			required("o_orderstatus", text, texts(oneOf(42, "O", "F", "F", "P"))),
			required("o_totalprice", money, cents(func(i int) int64 { return int64(100_000 + pick(i, 43, 50_000_000)) })),
			required("o_orderdate", date, dates(ordered)),
			required("o_orderpriority", text, texts(oneOf(44, "1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"))),
			required("o_clerk", text, texts(func(i int) string { return fmt.Sprintf("Clerk#%09d", 1+pick(i, 45, 1000)) })),
			required("o_shippriority", integ, ints(func(int) int { return 0 })),
			optional("o_comment", text, texts(sentence(46))),
		}},
		{name: "lineitem", rows: orders * linesPerOrder, commits: 4, columns: []column{
			required("l_orderkey", long, longs(func(i int) int64 { return id(orderOf(i)) })),
			required("l_partkey", long, longs(func(i int) int64 { return id(partOf(i)) })),
			required("l_suppkey", long, longs(func(i int) int64 {
				return int64((partOf(i)+pick(i, 53, 4)*max(1, suppliers/4))%suppliers + 1)
			})),
			required("l_linenumber", integ, ints(func(i int) int { return i%linesPerOrder + 1 })),
			required("l_quantity", money, cents(func(i int) int64 { return quantity(i) * 100 })),
			required("l_extendedprice", money, cents(extended)),
			required("l_discount", money, cents(func(i int) int64 { return int64(pick(i, 54, 11)) })),
			required("l_tax", money, cents(func(i int) int64 { return int64(pick(i, 55, 9)) })),
			required("l_returnflag", text, texts(func(i int) string {
				if shipped(i) > day(1995, time.June, 17) {
					return "N"
				}
				return oneOf(56, "R", "A")(i)
			})),
			required("l_linestatus", text, texts(func(i int) string {
				if shipped(i) > day(1995, time.June, 17) {
					return "O"
				}
				return "F"
			})),
			required("l_shipdate", date, dates(shipped)),
			required("l_commitdate", date, dates(func(i int) int { return ordered(orderOf(i)) + 30 + pick(i, 57, 61) })),
			required("l_receiptdate", date, dates(func(i int) int { return shipped(i) + 1 + pick(i, 58, 30) })),
			required("l_shipinstruct", text, texts(oneOf(59, "DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"))),
			required("l_shipmode", text, texts(oneOf(60, "REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"))),
			optional("l_comment", text, texts(sentence(61))),
		}},
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, t := range tables {
		t.namespace = "tpch"
		g.Go(func() error {
			if _, err := m.create(ctx, t); err != nil {
				return fmt.Errorf("table tpch.%s: %w", t.name, err)
			}
			return nil
		})
	}
	return g.Wait()
}
