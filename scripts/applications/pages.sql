-- Pages of newest entries with their authors: the first rows in the order of a key, joined.
CREATE TABLE author (id INT PRIMARY KEY, name VARCHAR(40) NOT NULL);
CREATE TABLE post (id INT PRIMARY KEY, author_id INT NOT NULL, status TINYINT NOT NULL, created DATETIME NOT NULL, score INT NOT NULL, KEY status_created (status, created));
INSERT INTO author SELECT seq, CONCAT('a', seq) FROM seq_1_to_20000;
INSERT INTO post SELECT seq, 1 + seq * 7919 % 20000, seq % 7 > 1, '2018-01-01' + INTERVAL seq * 9 MINUTE, seq*31%1009 FROM seq_1_to_300000;
CREATE TABLE post2 (id INT PRIMARY KEY, author_id INT NOT NULL, status TINYINT NOT NULL, created DATETIME NOT NULL, score INT, KEY status_created (status, created), KEY(author_id), KEY(created));
INSERT INTO post2 SELECT * FROM post;
CREATE TABLE rc (rc_id INT PRIMARY KEY AUTO_INCREMENT, rc_timestamp BINARY(14) NOT NULL, rc_actor BIGINT NOT NULL, rc_new TINYINT NOT NULL, KEY (rc_timestamp));
CREATE TABLE actor (actor_id BIGINT PRIMARY KEY, actor_name VARBINARY(100) NOT NULL);
INSERT INTO actor SELECT seq, CONCAT('a', seq) FROM seq_1_to_2000;
INSERT INTO rc SELECT seq, DATE_FORMAT('2023-01-01' + INTERVAL seq*3 MINUTE, '%Y%m%d%H%i%S'), 1 + seq*7919 % 2000, seq % 2 FROM seq_1_to_200000;
CREATE TABLE tag (id INT PRIMARY KEY AUTO_INCREMENT, ct_rc_id INT, t VARCHAR(20), KEY(ct_rc_id));
INSERT INTO tag SELECT seq, seq*3, CONCAT('t',seq%9) FROM seq_1_to_60000;
