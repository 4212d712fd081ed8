<?php
// What a blog does with its tables, by WordPress' own functions: php blog.php STEP FOLDER SOCKET DATABASE. `install` makes the tables,
// `write` fills them, `read` prints what pages would show; the same text for the same rows, whatever the engine.
[, $step, $folder, $socket, $name] = $argv;
define('ABSPATH', rtrim($folder, '/') . '/');
define('DB_NAME', $name);
define('DB_USER', 'root');
define('DB_PASSWORD', '');
define('DB_HOST', "localhost:$socket");
define('DB_CHARSET', 'utf8mb4');
define('DB_COLLATE', '');
define('WP_SITEURL', 'http://blog.invalid');
define('WP_HOME', 'http://blog.invalid');
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('DISABLE_WP_CRON', true);
define('WP_DEBUG', true);
define('WP_DEBUG_DISPLAY', true);
define('WP_INSTALLING', $step === 'install');
$_SERVER['HTTP_HOST'] = 'blog.invalid';
$table_prefix = 'wp_';

// In the place of WordPress' own: no mail leaves this test.
function wp_mail() { return true; }

require ABSPATH . 'wp-settings.php';
add_filter('pre_http_request', fn () => new WP_Error('none', 'no requests'));
require_once ABSPATH . 'wp-admin/includes/upgrade.php';
require_once ABSPATH . 'wp-admin/includes/taxonomy.php';

function must($value) {
    global $wpdb;
    if (is_wp_error($value)) throw new Exception($value->get_error_message());
    if (!$value || $wpdb->last_error) throw new Exception("nothing done: $wpdb->last_error");
    return $value;
}

function install() {
    must(wp_install('A blog', 'admin', 'admin@blog.invalid', true, '', 'secret')['user_id']);
    echo "installed\n";
}

function write() {
    global $wpdb;
    $users = $terms = $posts = [];
    for ($i = 1; $i <= 5; $i++)
        $users[] = must(wp_insert_user(['user_login' => "writer$i", 'user_pass' => 'x', 'user_email' => "writer$i@blog.invalid", 'role' => 'author']));
    for ($i = 1; $i <= 10; $i++) $terms[] = must(wp_insert_category(['cat_name' => "Topic $i \u{1F333}"]));
    for ($i = 1; $i <= 200; $i++) {
        $posts[] = must(wp_insert_post([
            'post_title' => "Post number $i", 'post_content' => str_repeat("Text of post $i, with \u{1F333} and 'quotes'. ", 1 + $i % 60),
            'post_status' => $i % 7 ? 'publish' : 'draft', 'post_author' => $users[$i % 5], 'post_date' => gmdate('Y-m-d H:i:s', 1767225600 + $i * 3600),
            'post_category' => [$terms[$i % 10]], 'tags_input' => ['odd' => $i % 2 ? 'odd' : 'even', 'all'], 'meta_input' => ['rank' => $i % 13]], true));
        if ($i % 3 === 0)
            must(wp_insert_comment(['comment_post_ID' => end($posts), 'comment_author' => 'Reader', 'comment_content' => "Comment $i",
                'comment_approved' => $i % 2, 'comment_date' => '2026-02-03 04:05:06']));
    }
    for ($i = 0; $i < 200; $i += 20) must(wp_update_post(['ID' => $posts[$i], 'post_title' => "Changed $i"], true));
    foreach (array_slice($posts, 10, 5) as $id) must(wp_delete_post($id, true));
    must(wp_trash_post($posts[30]));
    for ($i = 0; $i < 50; $i++) must(update_option("test_option_$i", ['n' => $i]));
    for ($i = 0; $i < 50; $i += 2) must(delete_option("test_option_$i"));
    must(set_transient('test_transient', str_repeat('x', 100000), 3600));
    must(wp_delete_user_reassigned($users[4], $users[0]));
    // A plugin's table, made and then widened by WordPress.
    must(dbDelta(visits('')));
    must($wpdb->insert("{$wpdb->prefix}visits", ['page' => 'first']));
    must(dbDelta(visits("hits int(11) NOT NULL default 3,\nKEY page (page),\n")));
    echo "written\n";
}

// dbDelta wants a line for each column and key.
function visits($more) {
    global $wpdb;
    return "CREATE TABLE {$wpdb->prefix}visits (\nid bigint(20) unsigned NOT NULL auto_increment,\npage varchar(190) NOT NULL,\n{$more}PRIMARY KEY  (id)\n)"
        . " {$wpdb->get_charset_collate()};";
}

function wp_delete_user_reassigned($user, $to) {
    require_once ABSPATH . 'wp-admin/includes/user.php';
    return wp_delete_user($user, $to);
}

function show($what, array $arguments) {
    $query = new WP_Query($arguments + ['posts_per_page' => 7, 'paged' => 2, 'post_type' => 'post']);
    echo "$what: $query->found_posts found, $query->max_num_pages pages: ", implode(',', wp_list_pluck($query->posts, 'ID')), "\n";
}

function read() {
    global $wpdb;
    show('newest', []);
    show('search', ['s' => "post 1"]);
    show('category', ['cat' => get_cat_ID("Topic 3 \u{1F333}")]);
    show('tag', ['tag' => 'odd', 'orderby' => 'title', 'order' => 'ASC']);
    show('meta', ['meta_key' => 'rank', 'orderby' => ['meta_value_num' => 'DESC', 'ID' => 'ASC'], 'meta_query' => [['key' => 'rank', 'value' => [3, 9], 'type' => 'NUMERIC', 'compare' => 'BETWEEN']]]);
    show('author and status', ['author' => 3, 'post_status' => ['draft', 'trash', 'publish'], 'orderby' => ['comment_count' => 'DESC', 'ID' => 'ASC']]);
    show('date', ['date_query' => [['after' => '2026-01-03', 'before' => '2026-01-06']]]);
    foreach (get_terms(['taxonomy' => ['category', 'post_tag'], 'hide_empty' => false, 'orderby' => 'term_id']) as $term) echo "$term->name $term->count\n";
    echo json_encode(wp_count_posts()), json_encode(wp_count_comments()), json_encode(count_users()['avail_roles']), "\n";
    echo json_encode(get_option('test_option_7')), json_encode(get_option('test_option_8')), strlen(get_transient('test_transient')), "\n";
    echo json_encode($wpdb->get_results("SELECT * FROM {$wpdb->prefix}visits")), "\n";
    // What dbDelta would change of WordPress' own tables: nothing of keys and columns that it has just made.
    echo json_encode(array_filter(dbDelta('all', false), fn ($change) => !str_contains($change, 'Changed type'))), "\n";
    foreach ($wpdb->get_col('SHOW TABLES') as $table) echo "$table ", $wpdb->get_var("SELECT COUNT(*) FROM `$table`"), "\n";
}

try {
    $step();
} catch (Exception $error) {
    fwrite(STDERR, $error . "\n");
    exit(1);
}
