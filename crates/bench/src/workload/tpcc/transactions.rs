//! The five transactions of TPC-C (clauses 2.4 to 2.8), as text statements of one session.

use super::tables::{last_name, non_uniform, Scale, DISTRICTS};
use crate::client::{quote, Connection, ResultSet};
use crate::error::{Error, Result};
use crate::generate::Random;

/// One of the five.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transaction {
    NewOrder,
    Payment,
    OrderStatus,
    Delivery,
    StockLevel,
}

/// All five, in the order of the shares.
pub(super) const TRANSACTIONS: [Transaction; 5] = [
    Transaction::NewOrder,
    Transaction::Payment,
    Transaction::OrderStatus,
    Transaction::Delivery,
    Transaction::StockLevel,
];

impl Transaction {
    pub(super) fn name(self) -> &'static str {
        match self {
            Transaction::NewOrder => "new order",
            Transaction::Payment => "payment",
            Transaction::OrderStatus => "order status",
            Transaction::Delivery => "delivery",
            Transaction::StockLevel => "stock level",
        }
    }
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    Committed,
    /// On purpose: one in a hundred new orders names an item that there is not.
    RolledBack,
}

/// One session, at home in one warehouse.
pub(super) struct Terminal {
    pub(super) connection: Connection,
    pub(super) random: Random,
    scale: Scale,
    warehouse: u64,
}

/// Constants of NURand for the run: the one for names is 85 from that of the load, as clause 2.1.6.1 wants.
const NAME_CONSTANT: u64 = 242;
const CUSTOMER_CONSTANT: u64 = 259;
const ITEM_CONSTANT: u64 = 7911;

impl Terminal {
    pub(super) fn new(connection: Connection, random: Random, scale: Scale, number: u64) -> Terminal {
        Terminal { connection, random, scale, warehouse: number % scale.warehouses + 1 }
    }

    pub(super) fn run(&mut self, transaction: Transaction) -> Result<Done> {
        match transaction {
            Transaction::NewOrder => self.new_order(),
            Transaction::Payment => self.payment(),
            Transaction::OrderStatus => self.order_status(),
            Transaction::Delivery => self.delivery(),
            Transaction::StockLevel => self.stock_level(),
        }
    }

    fn sql(&mut self, sql: &str) -> Result<ResultSet> {
        self.connection.query(sql)
    }

    fn district(&mut self) -> u64 {
        self.random.below(DISTRICTS) + 1
    }

    fn customer(&mut self) -> u64 {
        non_uniform(&mut self.random, 1023, CUSTOMER_CONSTANT, 1, self.scale.customers)
    }

    fn item(&mut self) -> u64 {
        non_uniform(&mut self.random, 8191, ITEM_CONSTANT, 1, self.scale.items)
    }

    /// Home, or in `part` of 100 cases another one, if there is another.
    fn other_warehouse(&mut self, part: u64) -> u64 {
        if self.scale.warehouses == 1 || !self.random.chance(part, 100) {
            return self.warehouse;
        }
        let other = self.random.below(self.scale.warehouses - 1) + 1;
        other + u64::from(other >= self.warehouse)
    }

    fn new_order(&mut self) -> Result<Done> {
        let (w, d, c) = (self.warehouse, self.district(), self.customer());
        let lines = self.random.between(5, 15) as usize;
        let unknown_item = self.random.chance(1, 100);
        let items: Vec<(u64, u64, i64)> =
            (0..lines).map(|_| (self.item(), self.other_warehouse(1), self.random.between(1, 10))).collect();
        let all_local = u8::from(items.iter().all(|(_, supplier, _)| *supplier == w));
        self.sql("START TRANSACTION")?;
        let sql = format!(
            "SELECT c_discount, c_last, c_credit, w_tax FROM customer JOIN warehouse ON w_id = c_w_id \
             WHERE c_w_id = {w} AND c_d_id = {d} AND c_id = {c}"
        );
        let rates = self.sql(&sql)?;
        let (discount, w_tax): (f64, f64) = (number(&rates, 0, 0)?, number(&rates, 0, 3)?);
        let sql =
            format!("SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = {w} AND d_id = {d} FOR UPDATE");
        let district = self.sql(&sql)?;
        let (order, d_tax): (u64, f64) = (number(&district, 0, 0)?, number(&district, 0, 1)?);
        self.sql(&format!(
            "UPDATE district SET d_next_o_id = {} WHERE d_w_id = {w} AND d_id = {d}",
            order + 1
        ))?;
        self.sql(&format!(
            "INSERT INTO orders VALUES ({order}, {d}, {w}, {c}, NOW(), NULL, {lines}, {all_local})"
        ))?;
        self.sql(&format!("INSERT INTO new_order VALUES ({order}, {d}, {w})"))?;
        for (line, &(item, supplier, quantity)) in items.iter().enumerate() {
            let item = if unknown_item && line + 1 == lines { self.scale.items + 1 } else { item };
            let found = self.sql(&format!("SELECT i_price, i_name, i_data FROM item WHERE i_id = {item}"))?;
            if found.rows() == 0 {
                self.sql("ROLLBACK")?;
                return Ok(Done::RolledBack);
            }
            let amount =
                number::<f64>(&found, 0, 0)? * quantity as f64 * (1.0 + w_tax + d_tax) * (1.0 - discount);
            let place = format!("({order}, {d}, {w}, {}, {item}, {supplier}, NULL, {quantity}", line + 1);
            self.take_from_stock(item, supplier, quantity, d).and_then(|info| {
                self.sql(&format!("INSERT INTO order_line VALUES {place}, {amount:.2}, {info})"))
            })?;
        }
        self.sql("COMMIT")?;
        Ok(Done::Committed)
    }

    /// Gives what the district is to know of the stock, as a literal.
    fn take_from_stock(&mut self, item: u64, supplier: u64, quantity: i64, district: u64) -> Result<String> {
        let key = format!("s_w_id = {supplier} AND s_i_id = {item}");
        let sql =
            format!("SELECT s_quantity, s_data, s_dist_{district:02} FROM stock WHERE {key} FOR UPDATE");
        let stock = self.sql(&sql)?;
        let there: i64 = number(&stock, 0, 0)?;
        let left = if there >= quantity + 10 { there - quantity } else { there - quantity + 91 };
        let remote = u8::from(supplier != self.warehouse);
        self.sql(&format!(
            "UPDATE stock SET s_quantity = {left}, s_ytd = s_ytd + {quantity}, s_order_cnt = s_order_cnt + 1, \
             s_remote_cnt = s_remote_cnt + {remote} WHERE {key}"
        ))?;
        Ok(quote(&stock.text(0, 2).unwrap_or_default()))
    }

    /// A customer by number, or in 60 of 100 cases the middle one of a last name.
    fn find_customer(&mut self, w: u64, d: u64) -> Result<Option<u64>> {
        if !self.random.chance(60, 100) {
            return Ok(Some(self.customer()));
        }
        let name = last_name(non_uniform(&mut self.random, 255, NAME_CONSTANT, 0, self.scale.names() - 1));
        let found = self.sql(&format!(
            "SELECT c_id FROM customer WHERE c_w_id = {w} AND c_d_id = {d} AND c_last = '{name}' ORDER BY c_first"
        ))?;
        match found.rows() {
            0 => Ok(None),
            rows => Ok(Some(number(&found, (rows - 1) / 2, 0)?)),
        }
    }

    fn payment(&mut self) -> Result<Done> {
        let (w, d) = (self.warehouse, self.district());
        let c_w = self.other_warehouse(15);
        let c_d = if c_w == w { d } else { self.district() };
        let amount = format!("{}.{:02}", self.random.between(1, 4999), self.random.below(100));
        self.sql("START TRANSACTION")?;
        self.sql(&format!("UPDATE warehouse SET w_ytd = w_ytd + {amount} WHERE w_id = {w}"))?;
        self.sql(&format!(
            "SELECT w_name, w_street_1, w_city, w_state, w_zip FROM warehouse WHERE w_id = {w}"
        ))?;
        self.sql(&format!("UPDATE district SET d_ytd = d_ytd + {amount} WHERE d_w_id = {w} AND d_id = {d}"))?;
        self.sql(&format!(
            "SELECT d_name, d_street_1, d_city, d_zip FROM district WHERE d_w_id = {w} AND d_id = {d}"
        ))?;
        let Some(c) = self.find_customer(c_w, c_d)? else {
            self.sql("ROLLBACK")?;
            return Ok(Done::RolledBack);
        };
        let key = format!("c_w_id = {c_w} AND c_d_id = {c_d} AND c_id = {c}");
        let customer = self.sql(&format!(
            "SELECT c_first, c_middle, c_last, c_credit, c_discount, c_balance FROM customer WHERE {key} FOR UPDATE"
        ))?;
        let bad_credit = customer.bytes(0, 3) == Some(b"BC");
        let data = if bad_credit {
            format!(", c_data = LEFT(CONCAT('{c} {c_d} {c_w} {d} {w} {amount}|', c_data), 500)")
        } else {
            String::new()
        };
        self.sql(&format!(
            "UPDATE customer SET c_balance = c_balance - {amount}, c_ytd_payment = c_ytd_payment + {amount}, \
             c_payment_cnt = c_payment_cnt + 1{data} WHERE {key}"
        ))?;
        self.sql(&format!(
            "INSERT INTO history VALUES ({c}, {c_d}, {c_w}, {d}, {w}, NOW(), {amount}, 'payment {w} {d}')"
        ))?;
        self.sql("COMMIT")?;
        Ok(Done::Committed)
    }

    fn order_status(&mut self) -> Result<Done> {
        let (w, d) = (self.warehouse, self.district());
        self.sql("START TRANSACTION")?;
        if let Some(c) = self.find_customer(w, d)? {
            self.sql(&format!(
                "SELECT c_balance, c_first, c_middle, c_last FROM customer \
                 WHERE c_w_id = {w} AND c_d_id = {d} AND c_id = {c}"
            ))?;
            let last = self.sql(&format!(
                "SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = {w} AND o_d_id = {d} AND o_c_id = {c} \
                 ORDER BY o_id DESC LIMIT 1"
            ))?;
            if last.rows() > 0 {
                let order: u64 = number(&last, 0, 0)?;
                self.sql(&format!(
                    "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
                     WHERE ol_w_id = {w} AND ol_d_id = {d} AND ol_o_id = {order}"
                ))?;
            }
        }
        self.sql("COMMIT")?;
        Ok(Done::Committed)
    }

    fn delivery(&mut self) -> Result<Done> {
        let (w, carrier) = (self.warehouse, self.random.between(1, 10));
        self.sql("START TRANSACTION")?;
        for d in 1..=DISTRICTS {
            let oldest = self.sql(&format!(
                "SELECT no_o_id FROM new_order WHERE no_w_id = {w} AND no_d_id = {d} \
                 ORDER BY no_o_id LIMIT 1 FOR UPDATE"
            ))?;
            if oldest.rows() == 0 {
                continue;
            }
            let order: u64 = number(&oldest, 0, 0)?;
            let o_key = format!("o_w_id = {w} AND o_d_id = {d} AND o_id = {order}");
            let ol_key = format!("ol_w_id = {w} AND ol_d_id = {d} AND ol_o_id = {order}");
            self.sql(&format!(
                "DELETE FROM new_order WHERE no_w_id = {w} AND no_d_id = {d} AND no_o_id = {order}"
            ))?;
            let customer = self.sql(&format!("SELECT o_c_id FROM orders WHERE {o_key}"))?;
            let c: u64 = number(&customer, 0, 0)?;
            self.sql(&format!("UPDATE orders SET o_carrier_id = {carrier} WHERE {o_key}"))?;
            self.sql(&format!("UPDATE order_line SET ol_delivery_d = NOW() WHERE {ol_key}"))?;
            let sum = self.sql(&format!("SELECT SUM(ol_amount) FROM order_line WHERE {ol_key}"))?;
            let amount = sum.text(0, 0).unwrap_or_else(|| "0".to_owned());
            self.sql(&format!(
                "UPDATE customer SET c_balance = c_balance + {amount}, c_delivery_cnt = c_delivery_cnt + 1 \
                 WHERE c_w_id = {w} AND c_d_id = {d} AND c_id = {c}"
            ))?;
        }
        self.sql("COMMIT")?;
        Ok(Done::Committed)
    }

    fn stock_level(&mut self) -> Result<Done> {
        const ORDERS: u64 = 20;
        let (w, d, threshold) = (self.warehouse, self.district(), self.random.between(10, 20));
        self.sql("START TRANSACTION")?;
        let district =
            self.sql(&format!("SELECT d_next_o_id FROM district WHERE d_w_id = {w} AND d_id = {d}"))?;
        let next: u64 = number(&district, 0, 0)?;
        self.sql(&format!(
            "SELECT COUNT(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id \
             WHERE ol_w_id = {w} AND ol_d_id = {d} AND ol_o_id >= {} AND ol_o_id < {next} AND s_quantity < {threshold}",
            next.saturating_sub(ORDERS)
        ))?;
        self.sql("COMMIT")?;
        Ok(Done::Committed)
    }
}

/// A cell that must be there and be a number: else the database is not the one that was loaded.
fn number<T: std::str::FromStr>(result: &ResultSet, row: usize, column: usize) -> Result<T> {
    result.number(row, column).ok_or_else(|| Error::Data("a row of TPC-C that is not there".to_owned()))
}
