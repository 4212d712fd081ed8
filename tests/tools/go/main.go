// What a Go program does with tables of one engine: `client SOCKET DATABASE ENGINE`. Prints a line for each check.
package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
)

var (
	engine string
	failed bool
)

func check(what string, body func() error) {
	if err := body(); err != nil {
		failed = true
		fmt.Printf("FAILED  %s: %s: %v\n", engine, what, err)
		return
	}
	fmt.Printf("ok      %s: %s\n", engine, what)
}

func same(found, wanted any) error {
	if a, b := fmt.Sprint(found), fmt.Sprint(wanted); a != b {
		return fmt.Errorf("%s is not %s", a, b)
	}
	return nil
}

func code(err error) int {
	var number *mysql.MySQLError
	if errors.As(err, &number) {
		return int(number.Number)
	}
	if err != nil {
		return -1
	}
	return 0
}

func one(db *sql.DB, query string) string {
	var value string
	if err := db.QueryRow(query).Scan(&value); err != nil {
		return err.Error()
	}
	return value
}

func open(options string) *sql.DB {
	db, err := sql.Open("mysql", fmt.Sprintf("root@unix(%s)/%s?parseTime=true&%s", os.Args[1], os.Args[2], options))
	if err != nil {
		panic(err)
	}
	return db
}

func values(db *sql.DB, how string) {
	check("values of many types, "+how, func() error {
		at := time.Date(2026, 2, 3, 4, 5, 6, 789012000, time.UTC)
		data := bytes.Repeat([]byte("pando \U0001F333"), 30000)
		result, err := db.Exec("INSERT INTO client (name, amount, at, big, data) VALUES (?, ?, ?, ?, ?)",
			how+" \U0001F333", "12345678901234.567891", at, uint64(18446744073709551615), data)
		if err != nil {
			return err
		}
		id, _ := result.LastInsertId()
		var name, amount string
		var when time.Time
		var big uint64
		var back []byte
		err = db.QueryRow("SELECT name, amount, at, big, data FROM client WHERE id = ?", id).Scan(&name, &amount, &when, &big, &back)
		if err != nil {
			return err
		}
		if !bytes.Equal(data, back) {
			return errors.New("other bytes")
		}
		return same([]any{name, amount, when, big}, []any{how + " \U0001F333", "12345678901234.567891", at, uint64(18446744073709551615)})
	})
}

func transactions(db *sql.DB) {
	for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
		check("rollback and commit, "+level.String(), func() error {
			for _, keep := range []bool{false, true} {
				tx, err := db.BeginTx(context.Background(), &sql.TxOptions{Isolation: level})
				if err != nil {
					return err
				}
				if _, err = tx.Exec("INSERT INTO client (name) VALUES (?)", fmt.Sprint(level, keep)); err != nil {
					return err
				}
				end := tx.Rollback
				if keep {
					end = tx.Commit
				}
				if err = end(); err != nil {
					return err
				}
			}
			return same(one(db, "SELECT GROUP_CONCAT(name) FROM client WHERE name LIKE '"+level.String()+"%'"), level.String()+" true")
		})
	}
	check("a transaction that only reads", func() error {
		tx, err := db.BeginTx(context.Background(), &sql.TxOptions{ReadOnly: true})
		if err != nil {
			return err
		}
		_, err = tx.Exec("DELETE FROM client")
		_ = tx.Rollback()
		return same(code(err), 1792)
	})
	check("the number of the error of a duplicate key", func() error {
		_, err := db.Exec("INSERT INTO client (id) SELECT MIN(id) FROM client")
		return same(code(err), 1062)
	})
}

func deadlock(db *sql.DB) {
	check("one of two that wait for each other gets error 1213", func() error {
		if _, err := db.Exec("INSERT INTO client (id, name) VALUES (1001, 'a'), (1002, 'b')"); err != nil {
			return err
		}
		half := func(tx *sql.Tx, id int) error {
			_, err := tx.Exec("UPDATE client SET name = CONCAT(name, 'x') WHERE id = ?", id)
			return err
		}
		a, _ := db.Begin()
		b, _ := db.Begin()
		if err := errors.Join(half(a, 1001), half(b, 1002)); err != nil {
			return err
		}
		ends := make([]int, 2)
		var both sync.WaitGroup
		for i, tx := range []*sql.Tx{a, b} {
			both.Add(1)
			go func() {
				defer both.Done()
				ends[i] = code(half(tx, 1002-i))
				if ends[i] == 0 {
					_ = tx.Commit()
				} else {
					_ = tx.Rollback()
				}
			}()
		}
		both.Wait()
		sort.Ints(ends)
		return same(ends, []int{0, 1213})
	})
}

func many(db *sql.DB) {
	check("8 goroutines insert 800 rows by one prepared statement", func() error {
		statement, err := db.Prepare("INSERT INTO client (name, big) VALUES (?, ?)")
		if err != nil {
			return err
		}
		defer statement.Close()
		errs := make([]error, 8)
		var all sync.WaitGroup
		for g := range errs {
			all.Add(1)
			go func() {
				defer all.Done()
				for i := range 100 {
					if _, err := statement.Exec(fmt.Sprintf("many %d %d", g, i), i); err != nil {
						errs[g] = err
					}
				}
			}()
		}
		all.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
		return same(one(db, "SELECT CONCAT(COUNT(*), ' ', SUM(big)) FROM client WHERE name LIKE 'many%'"), "800 39600")
	})
	check("LOAD DATA LOCAL from a reader", func() error {
		mysql.RegisterReaderHandler("rows", func() io.Reader { return bytes.NewBufferString("loaded 1\t1\nloaded 2\t2\n") })
		if _, err := db.Exec("LOAD DATA LOCAL INFILE 'Reader::rows' INTO TABLE client (name, big)"); err != nil {
			return err
		}
		return same(one(db, "SELECT SUM(big) FROM client WHERE name LIKE 'loaded%'"), "3")
	})
	check("all rows of a table", func() error {
		rows, err := db.Query("SELECT id, at FROM purchase ORDER BY id")
		if err != nil {
			return err
		}
		defer rows.Close()
		sum := 0
		for rows.Next() {
			var id int
			var at time.Time
			if err := rows.Scan(&id, &at); err != nil {
				return err
			}
			sum += id
		}
		return same(sum, 200010000)
	})
}

func main() {
	engine = os.Args[3]
	db := open("")
	if _, err := db.Exec("CREATE TABLE client (id BIGINT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(100) UNIQUE, amount DECIMAL(20,6), " +
		"at DATETIME(6), big BIGINT UNSIGNED, data LONGBLOB) ENGINE=" + engine); err != nil {
		panic(err)
	}
	values(db, "prepared statements")
	values(open("interpolateParams=true"), "text protocol")
	transactions(db)
	deadlock(db)
	many(db)
	if failed {
		os.Exit(1)
	}
}
