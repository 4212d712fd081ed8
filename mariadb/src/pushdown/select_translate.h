/* Whole SELECTs on columns: whatever tables, joins, subqueries and groups it has.

   The server asks (`handlerton::create_select`) when a top-level SELECT has been resolved and not optimised. If it is one that
   `Select_translator` can say in the engine's words (crates/analytic), and the server's keys are not the better way, it is
   **answered then and there**; whatever comes in the way leaves it to the server, as nothing of it has been changed.

   Why this hook beside that of pushdown.h, and what is taken: docs/decisions/0017-any-select.md. */
#ifndef PANDO_SELECT_TRANSLATE_H
#define PANDO_SELECT_TRANSLATE_H

#include "pushdown.h"
#include "select_bytes.h"
#include "select_kind.h"
#include "moment_floor.h"
#include "select_server.h"
#include "sql_select.h"
#include "item_windowfunc.h"

#include <functional>
#include <list>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace pando {

/* An expression, said. */
struct Said
{
  std::string bytes;
  Value_kind kind;
  bool is_mixed= false;   /* a DECIMAL whose digits behind the point differ from row to row in the server */
  bool mixes_zero= false; /* likewise, but those with fewer are nothing but 0 */
  bool is_exact= false;   /* it has been divided: it has more digits than the server shows */
  double digits= 19;      /* of a number without its point, at most */
};

/* A function of a text and constants. */
struct Text_change
{
  /* NOT_FILLED: the same, but NULL of a text that ends as if it were filled with spaces. FITS: the same if the server sorts it by all of it, which it does of texts that take `position` bytes; else NULL. */
  enum What { SUBSTRING, LEFT, RIGHT, TRIM, LTRIM, RTRIM, LOWER, UPPER, FITS, NOT_FILLED };
  What what;
  CHARSET_INFO *charset;
  longlong position, length;
  bool operator==(const Text_change &other) const
  {
    return what == other.what && charset == other.charset && position == other.position && length == other.length;
  }
  uint64_t apply(const uint8_t *text, size_t size, uint8_t *to, uint64_t room) const;

private:
  uint64_t part(const uint8_t *text, size_t size, uint8_t *to, uint64_t room) const;
  uint64_t in_case(const uint8_t *text, size_t size, uint8_t *to, uint64_t room) const;
  bool fits(const uint8_t *text, size_t size) const;
  bool ends_as_if_filled(const uint8_t *text, size_t size) const;
};

/* A number of a text. */
struct Text_measure
{
  enum What { BYTES, CHARACTERS };
  What what;
  CHARSET_INFO *charset;
  bool operator==(const Text_measure &other) const { return what == other.what && charset == other.charset; }
  int64_t of(const uint8_t *text, size_t size) const
  {
    return int64_t(what == BYTES ? size : charset->numchars(reinterpret_cast<const char *>(text), reinterpret_cast<const char *>(text) + size));
  }
};

/* A test of a text: a pattern, or a comparison with a constant, which the collation ends at the first difference. */
struct Text_test
{
  const Like_pattern *pattern;
  CHARSET_INFO *collation;
  PandoComparison comparison;
  std::string constant;
  bool operator==(const Text_test &other) const
  {
    return pattern == other.pattern && collation == other.collation && comparison == other.comparison && constant == other.constant;
  }
  bool passes(const uint8_t *text, size_t size) const;
};

/* Says a SELECT in the engine's words. */
class Select_translator
{
public:
  explicit Select_translator(THD *thd);
  /* False: not this one; `reason` says why. */
  bool translate(SELECT_LEX *select);
  const std::string &bytes() const { return m_bytes; }
  /* These, and what is kept beside them (select_given_back.cc): two queries of which the same is said are answered alike. */
  std::string all_that_is_said(SELECT_LEX *select) const;
  /* For people (select_report.cc). */
  std::string name_of_column(uint slot) const;
  std::string name_of_table(int number) const;
  std::string name_of_served(uint number) const;
  const char *reason= "an expression";

  /* What the server says once, of a constant that it converts when it first compares it: if the SELECT has rows. */
  struct Warning { uint code; std::string text; };
  std::vector<Warning> warnings;
  /* Beyond the outputs there is how many rows there are. */
  bool is_counted= false;

  std::vector<TABLE *> tables;
  /* Those of which it looks at the lengths of values that may lie apart. */
  std::set<const TABLE *> tables_of_lengths;
  /* What has their rows: each table's own handler, or those of the partitions that are read. */
  std::vector<ha_pando *> handlers;
  std::vector<const void *> collations, tests, changes, floors, measures;
  /* What the server's own Items compute. */
  std::vector<std::unique_ptr<Server_expression>> served_expressions;
  /* What each column that the SELECT gives is. */
  std::vector<Value_kind> outputs;
  uint columns= 0;

private:
  struct Column { uint slot; Field *field; bool is_length; };
  /* A table, or a derived one, that columns are looked for in. */
  struct Source
  {
    TABLE_LIST *list;
    TABLE *table;
    int number= -1;                    /* of a table: of its first handler */
    uint parts= 1;
    std::vector<Column> columns;       /* of a table */
    std::vector<uint> slots;           /* of a derived one */
    std::vector<Value_kind> kinds;
    std::string bytes;                 /* of a derived one */
    size_t sources_within= 0;          /* of a derived one: those from here to this place in the list are in it */
    std::string filter;                /* of a table: which rows there are; empty: all */
  };
  /* A part of FROM. */
  struct Part
  {
    TABLE_LIST *list= nullptr;
    bool is_outer= false;
    std::string on;
    Source *source= nullptr;
    std::vector<Part> nest;
  };
  /* BRANCH: of a UNION or the like. */
  enum class Use { TOP, DERIVED, MERGED, SCALAR, EXISTS, IN, BRANCH };

  class Nesting
  {
  public:
    explicit Nesting(Select_translator *translator) : m_translator(translator) { m_translator->m_depth++; }
    ~Nesting() { m_translator->m_depth--; }
    Nesting(const Nesting &) = delete;
    Nesting &operator=(const Nesting &) = delete;
    bool is_allowed() const;

  private:
    Select_translator *const m_translator;
  };

  bool refuse(const char *why)
  {
    reason= why;
    return false;
  }
  /* Nor would the server's own Item be right here, or it would be silent where the server is not. */
  bool refuse_for_good(const char *why)
  {
    m_is_hopeless= true;
    return refuse(why);
  }

  /* A constant of which the server has something to say: its own Item says it, if that is a warning, and if it may be heard. */
  bool refuse_constant(const Silent_evaluation &evaluation)
  {
    static const char WHY[]= "a constant that warns";
    return m_hears_constants && !evaluation.has_error() ? refuse(WHY) : refuse_for_good(WHY);
  }

  /* select_translate.cc */
  bool unit(SELECT_LEX_UNIT *unit, Use use, std::string *to, std::vector<uint> *slots, std::vector<Value_kind> *kinds);
  bool from(List<TABLE_LIST> *list, std::vector<Part> *parts);
  bool part(TABLE_LIST *list, Part *part);
  bool leave_out_expired(Source *source);
  bool on(std::vector<Part> *parts);
  bool put_from(const std::vector<Part> &parts, std::string *to);
  bool put_table(const Source &source, std::string *to);
  uint32_t first_number(const Source &source) const;
  /* `is_part`: of what may warn. */
  void ask(const std::string &bytes, bool is_part= false)
  {
    Select_bytes::byte(&m_asked, is_part);
    m_asked+= bytes;
    m_asked_count++;
  }

  /* select_block.cc */
  struct Block;
  bool block(SELECT_LEX *select, Use use, std::string *to, std::vector<uint> *slots, std::vector<Value_kind> *kinds);
  bool from_where(Block *block);
  bool of_groups(Block *block);
  bool group_by(Block *block);
  bool group(Item *item, Said *said, std::string *exact);
  bool having(Block *block);
  bool select_list(Block *block);
  bool select_item(Item *item, Block *block);
  bool output(Item *item, Use use, Said *said);
  bool keep_digits(Item *item, Use use, Said *said);
  bool hides_quotient(const Said &said) const;
  bool the_same_rounded(Said *said, const std::function<bool(Said *)> &say);

  /* select_determined.cc */
  static void put_determined(SELECT_LEX *select, const std::vector<Part> &parts, std::string *to);

  /* select_order.cc */
  bool order_by(Block *block);
  bool order_item(const ORDER *order, Block *block);
  bool order_of(SELECT_LEX *select, Item *item, Said *said);
  bool order_of_scan(TABLE *table, std::string *to, uint *count);
  static void implied_order(Block *block);
  bool limits(const Block &block, std::string *to);

  /* select_kept.cc */
  bool makes_groups(Item *item);
  bool keeps_signs(SELECT_LEX *select, Use use);
  void hold_group(Item *item, Said *said);
  Field *filled_field(Item *item) const;
  void without_filling(const Field *field, Said *said);
  void hold(const Item *item, Said *said);

  /* select_sharp.cc */
  bool is_shown(const Item_sum *sum) const;
  /* What an expression does with sums: nothing but what their ends tell it, something else with their last digits, or nothing that matters. */
  enum class Steps { NONE, TOLD, OPEN };
  Steps steps_of(Item *item) const;
  bool say_bent(const std::function<bool(Said *)> &say, Said *said, std::vector<Said> *bent);
  bool sharply(Item *item, Said *said, const std::function<bool(Said *)> &say);
  bool order_near(Item *item, const std::function<bool(Said *)> &say, Said *said, bool *is_near);

  /* select_sets.cc */
  bool together(SELECT_LEX_UNIT *unit, Use use, std::string *to, std::vector<uint> *slots, std::vector<Value_kind> *kinds);
  bool as_column_of_union(Item *type, Item *item, Said *said);

  /* select_rollup.cc */
  bool rollup(SELECT_LEX *select, const std::vector<std::string> &groups, std::string *to);

  /* select_window.cc */
  bool text_of_member(Item *argument, Said *of);
  bool window(Item_window_func *item, Said *said);
  bool put_window(Item_window_func *item, PandoWindow function, const Value_kind &kind, longlong number, const Said *of, std::string *to);
  bool put_sorted_by(SQL_I_List<ORDER> *list, bool with_direction, std::string *to);
  bool put_frame(Window_spec *spec, std::string *to);

  /* select_expression.cc */
  bool expression(Item *item, Said *said);
  bool value(Item *item, Said *said);
  bool native(Item *item, Said *said);
  bool computed(Item *item, Said *said);
  bool constant(Item *item, Said *said);
  bool constant_of(Item *item, const Value_kind &kind, CHARSET_INFO *charset, Said *said);
  bool constant_number(Item *item, Said *said);
  bool constant_real(Item *item, Said *said);
  bool constant_moment(Item *item, Said *said);
  bool constant_time(Item *item, Said *said);
  bool constant_text(Item *item, CHARSET_INFO *charset, Said *said);
  bool is_constant(Item *item) const;
  bool is_some_constant(Item *item);
  bool column(Field *field, Said *said);
  bool column_of_source(Field *field, Said *said);
  bool derived_column(Item_ref *ref, Said *said, bool *is_known);
  bool column_behind(const Item *item, Said *said);
  bool function(Item_func *function, Said *said);
  bool arithmetic(Item_func *function, PandoOperation operation, Said *said);
  bool division(Item_func *function, Said *said);
  bool divide(const Said &first, const Said &second, uint increment, Said *said);
  bool null_if(Item_func *function, Said *said);
  bool negation(Item_func *function, Said *said);
  bool choice(Item_func *function, const std::vector<std::pair<Item *, Item *>> &whens, Item *otherwise, Said *said);
  bool case_of(Item_func *function, Said *said);
  bool coalesce(Item_func *function, Said *said);
  bool moment_part(Item_func *function, PandoMomentPart part, Said *said);
  bool date_of(Item_func *function, Said *said);
  bool unix_timestamp(Item_func *function, bool only_seconds, Said *said);
  bool cuttable(Item *item, Said *said);
  bool whole_quotient(Item_func *function, Said *said);
  bool cut_quotient(Item *item, uint scale, Said *said);
  bool truncation(Item_func *function, Said *said);
  bool cast_to_integer(Item_func *function, Said *said);
  bool text_change(Item_func *function, Text_change::What what, Said *said);
  bool text_measure(Item_func *function, Text_measure::What what, Said *said);
  bool length_of_column(Item *item, Said *said); /* select_length.cc */
  void floor_leaves(Server_expression *served);
  uint32_t number_of_change(const Text_change &change);
  void change(const Text_change &change, Said *said);
  std::string passes(const Text_change &test, const Said &said);
  bool sort_by_all(Item *item, bool may_wrap, Said *said);
  bool aggregate(Item_sum *sum, Said *said);
  bool addend(Item_sum *sum, PandoFunction function, Said *of, Value_kind *kind, bool may_warn, std::string *is_sure);
  bool counts_groups_in_table() const;
  bool quotient_addend(Item *argument, bool may_warn, Said *of, std::string *is_sure);
  bool average(Item_sum_avg *sum, const Said &of, const Value_kind &kind, Said *said);
  bool extreme(Item_sum *sum, Item *argument, Said *of);
  bool of_moments(Item_sum *sum, PandoFunction function, Said *said);
  bool knows_order_of_rows() const;
  bool shows_first_texts() const;
  void bend(const Item_sum *sum, PandoFunction function, const Said &of, Said *said);
  bool of_bits(Item_sum *sum, Said *said);
  bool as_real(Item *argument, Said *of);
  bool of_rows(Item_sum *sum, Said *said);
  bool concat(Item_sum *sum, Said *said);
  bool concat_argument(Item *argument, const Item *result, bool is_distinct, Said *of);
  bool subquery(Item_subselect *item, Said *said);
  bool to_real(Item *item, Said *said);
  bool computes_of_widened(uint met_before);
  void put_slot(uint slot, const Value_kind &kind, Said *said);
  uint collation_number(const CHARSET_INFO *collation);
  uint type_number(const Field *field);
  bool kind_of_field(Field *field, Value_kind *kind, uint *form, uint *precision);
  Value_kind kind_of_number(const Item *item) const;

  /* select_given_back.cc */
  void values_of_constants(Item *item, std::vector<std::string> *to) const;

  /* select_served.cc */
  bool server(Item *item, bool is_condition, Said *said);
  bool served_as(Item *item, const Value_kind &kind, bool is_condition, bool has_more_digits, Said *said);
  bool leaves_of(Item **place, Server_expression *served);
  bool function_leaves(Item_func *function, Server_expression *served);
  bool is_of_table(const Field *field) const;
  bool keeps_a_leaf(const Item_func *function) const;
  bool field_leaf(Item **place, Server_expression *served);
  bool leaf(Item **place, bool is_of_group, Server_expression *served);
  bool is_group(Item *item) const;
  bool ask_of_parts(Server_expression *served);
  bool converts(Item_func *function);

  /* select_condition.cc */
  bool condition(Item *item, Said *said);
  bool truth(Item *item, Said *said);
  bool native_condition(Item *item, Said *said);
  bool condition_of_query(Item_subselect *query, bool is_conjunct, Said *said);
  bool is_null(Item_func *function, bool is_optimized, Said *said);
  bool list(Item_cond *list, bool is_always_met, bool is_conjunct, bool is_optimized, Said *said);
  bool constant_with_warning(Item *item, const Value_kind &kind, Said *said);
  bool comparison(Item_func *function, PandoComparison comparison, Said *said, bool is_conjunct= false);
  void note_first(bool is_conjunct, Item *first, Item *second, const std::string &said);
  bool compare(PandoComparison comparison, Item *first, Item *second, CHARSET_INFO *collation, std::string *to, bool is_sign= false);
  bool stamp_with_constant(PandoComparison comparison, Item *first, Item *second, std::string *to);
  void bound_moment(PandoComparison side, long day, const Said &column, std::string *to);
  void bound_days(PandoComparison comparison, Item *computed, Item *constant, size_t begin, std::string *to);
  void round_to_shown(const Item *item, Said *said);
  bool between(Item_func *function, Said *said);
  bool in_list(Item_func *function, bool is_conjunct, Said *said);
  bool like(Item_func *function, Said *said);
  uint32_t number_of_test(const Text_test &test);
  bool test_of_text(PandoComparison comparison, const Said &text, const Said &constant, CHARSET_INFO *collation, std::string *to);
  bool ask_for_key(Item *first, Item *second, const Said &of_first, const Said &of_second);
  bool like_each_other(Said *first, Said *second, CHARSET_INFO *collation);
  void convert(Said *said, const Value_kind &kind);

  /* select_rows.cc */
  bool rows_equal(Item *first, Item *second, bool is_sign, std::string *to, bool is_conjunct= false);
  bool in_rows(Item_func_in *in, bool is_conjunct, Said *said);
  bool left_of_in(Item *left, std::string *to, std::vector<Value_kind> *kinds);
  bool is_alike_in(Item *left, uint column, st_select_lex_unit *unit, const Value_kind &outer, const Value_kind &inner);
  bool in_query(Item_in_subselect *item, bool is_conjunct, Said *said);

  void negate(std::string *bytes) { bytes->insert(0, 1, char(PANDO_TAG_NOT)); }

  THD *m_thd;
  std::string m_bytes;
  std::list<Source> m_sources;
  std::list<Like_pattern> m_patterns;
  std::list<Text_test> m_tests;
  std::list<Text_change> m_changes;
  std::list<Text_measure> m_measures;
  std::list<Moment_floor> m_floors;
  std::map<const CHARSET_INFO *, uint> m_collations;
  std::map<std::pair<const void *, uint>, uint> m_types;
  ORDER *m_groups= nullptr; /* of what is said of groups */
  std::vector<std::pair<std::string, std::string>> m_quotients; /* groups by them: exact, and rounded */
  /* Columns that the server makes groups by with their filling: of what is said of groups, and while they are said. */
  std::set<const Field *> m_filled, m_filled_groups;
  bool m_is_hopeless= false;
  /* Of several tables, the server may sort the rows of one before it joins them. */
  bool m_is_order= false, m_order_can_fail= false, m_fails_in_order= false;
  /* Several tables are read: of which rows an order is computed is a matter of the server's plan. */
  const bool m_has_joins;
  /* What the server may compute of all rows of a table, and how many that are. */
  std::string m_asked;
  uint32_t m_asked_count= 0;
  /* The equalities that the server computes before the other conditions. */
  std::string m_first;
  uint32_t m_first_count= 0;
  /* See the_same_rounded(). */
  bool m_rounds_averages= false, m_has_inner_average= false;
  /* What is said is an average that the server's Item computes something of. */
  bool m_is_average_in_function= false;
  SELECT_LEX *m_select= nullptr; /* the one that is being said */
  /* Integers that become other numbers in a UNION: which columns of the one that is being said, and all slots of such. How often one
     has been met. */
  std::set<uint> m_widened_columns, m_widened;
  uint m_widened_met= 0;
  /* Columns of merged views whose digits differ from row to row, as those of what they show do. */
  std::map<uint, Said> m_mixed;
  /* Of a branch of a UNION: what its columns become. */
  const std::vector<Item *> *m_union_types= nullptr;
  uint m_next_slot= 0;
  uint m_depth= 0;
  uint m_nodes= 0;
  /* It is asked of each row that the SELECT has. */
  bool m_is_always_met= false, m_may_warn_once= false;
  /* It is a part of WHERE of which false and NULL are the same; and IN of a query is. */
  bool m_is_conjunct= false, m_is_plain_in= false;
  /* What stands before IN of a query may be NULL. */
  bool m_may_in_be_null= true;
  /* Of which rows a condition is computed is a matter of the server's plan, so it may not fail. */
  bool m_is_condition= false;
  /* Likewise; as a part of it the optimizer makes something else of `date IS NULL`. */
  bool m_is_optimized= false;
  /* Of rows, not of groups: in ON, WHERE and aggregates, and in a SELECT without groups. */
  bool m_looks_at_rows= false;
  /* In HAVING, or in a query within a condition. */
  bool m_is_in_having= false;
  /* What is shown and nothing else is done with: an aggregate may have other last digits there, as in another plan of the server's. */
  const Item *m_shown= nullptr;
  /* See select_sharp.cc: whether something is said of sums and of their ends, of which sums, and of which ends: a bit for each sum, plus one; 0: of the
     sums themselves. */
  bool m_is_bending= false;
  std::vector<const Item_sum *> m_bent;
  uint m_bend= 0;
  /* What Items say may be told, if the engine answers: of constants, and of rows, which of those beyond a LIMIT is open. */
  bool m_hears_constants= false, m_hears_rows= true, m_hears_conditions= true;
  /* How often there was an expression of the server's that may warn. */
  uint m_warning_met= 0;
};

/* select_place.cc: the handlers that have a table's rows. None: it is not a table of the engine, or not one that may be read so. */
std::vector<ha_pando *> handlers_of(TABLE *table);
/* Whether the SELECT is one of a statement in which it may be answered. */
bool is_statement_for_engine(THD *thd, const SELECT_LEX *select);
/* Whether the values of the SELECT are stored by the statement. */
bool is_stored_by_statement(const THD *thd);

/* Whether what is selected goes to variables (INTO), which take numbers with all digits that they are computed with. */
bool sets_variables(const THD *thd);


/* select_rows.cc: whether rows of values are compared within an expression. */
bool compares_rows(Item *item);

/* The digits of a number, and how many are behind the point. */
bool digits_of(const my_decimal *decimal, __int128 *value, uint *scale);

/* Whether it is the least or the largest of zero-filled numbers. */
bool is_filled_extreme(Item *item);

/* Whether there is a function within it that does something, or whose value is not a matter of its arguments. A user variable is read once. */
bool acts(const Item *item, uint depth= 0);
/* The same comparison, written the other way round. */
PandoComparison swapped(PandoComparison comparison);
/* Whether the optimizer may look for a constant in a key, and convert it for that once more: of the column, or of one that it is equal to. */
bool may_be_in_key(const SELECT_LEX *select, Item *item);
bool is_converted_for_key(Item *first, Item *second);
bool is_compared_to_digits(const Item *first, const Item *second);
bool compare_as_stored(PandoComparison comparison, Item *first, Item *second, const Value_kind &a, const Value_kind &b);

/* Whether it is an IN whose list has been converted for good. */
bool is_list_converted(Item_func *function);

/* Whether it is a column of numbers with zeros before them. */
bool has_zerofill(Item *item);

/* Whether a value has no more digits than the server thinks. */
bool has_digits_of_type(Item *argument, const Said &of);

/* Whether there is a DIV of something else than integers in it that has more digits than the server thinks. */
bool has_wide_quotient(Item *item, uint depth= 0);

/* Whether it is a column whose bytes are in the order of its values. */
bool has_order_of_bytes(const Item *item);

/* Whether the server may look at no more than the beginning of texts to sort them. */
bool is_sorted_by_prefix(const THD *thd, const Item *item);
bool is_sorted_by_few_levels(const THD *thd, const Item *item);

/* Whether the optimizer makes something else of an IS NULL, whatever the item would give. */
bool is_rewritten(const Item_func *function);

/* select_plan.cc: whether somebody has asked for no more than so many rows. */
bool has_limit(const Lex_select_limit &params);
/* Whether it shows rows of one table, as they come. */
bool is_of_rows(SELECT_LEX *select);
/* The LIMIT of a SELECT without an order that is computed whole, whatever its LIMIT: it is the engine's if no row is beyond it. 0: it is no such SELECT. */
uint64_t limit_that_leaves_all(SELECT_LEX *select);
/* Rows of one table that the engine gives at most if nobody has asked for an order: more go to the server one after the other. */
static const uint64_t ROWS_AS_THEY_COME_MAX= 65535;
/* Whether a SELECT is one that the engine is asked about at all. */
bool is_select_for_engine(THD *thd, SELECT_LEX *select, const char **reason);
/* Whether the server's keys are the better way. */
struct Select_cost;
bool is_select_better_done_by_keys(THD *thd, SELECT_LEX *select, const Select_cost &cost, const Select_translator &translator);

/* hton->create_select */
#ifdef PANDO_SERVER_11_8
select_handler *create_select_pushdown(THD *thd, SELECT_LEX *select, SELECT_LEX_UNIT *unit);
#else
select_handler *create_select_pushdown(THD *thd, SELECT_LEX *select);
#endif

} // namespace pando

#endif
