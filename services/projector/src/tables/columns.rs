//! Statements that write many rows at once, put together when they are compiled. A column is one line, which says its
//! name, its type in Postgres and its value in a row:
//!
//! ```text
//! update_rows!(connection, rows, "chain_steps", |((chain, step), row)| {
//!     key "chain_id": "uuid" = *chain,
//!     key "step": "int" = *step,
//!     set "approval_id": "uuid" = row.approval_id,
//! }, "chain_steps.approval_id IS NULL")
//! ```
//!
//! becomes one statement with one parameter a column, which sqlx checks as any other (`scripts/prepare-queries`):
//!
//! ```text
//! UPDATE chain_steps SET approval_id = new.approval_id
//! FROM (SELECT chain_id, step, approval_id
//!       FROM UNNEST($1::uuid[], $2::int[], $3::uuid[]) AS new (chain_id, step, approval_id)) AS new
//! WHERE chain_steps.chain_id = new.chain_id AND chain_steps.step = new.step AND (chain_steps.approval_id IS NULL)
//! ```
//!
//! | line | says |
//! |---|---|
//! | `"a": "int" = value,` | a column of the new rows |
//! | `key "a": "int" = value,` | the same, by which the row that is there is found |
//! | `set "a": "int" = value,` | the same, which replaces what is there |
//! | `set "a": "int" = value => "sql",` | the same, and what is there becomes this expression |
//! | `if "sql" { "a": "int" = value, … }` | columns that replace what is there if this condition holds |
//!
//! In expressions and conditions, the row that is there has the name of its table, and the new one is called `new`, or
//! `excluded` in an upsert. There may be 32 columns. JSON is sent as text and cast row by row, which costs Postgres less
//! than to cast an array.

/// `insert_rows!(connection, rows, "table", |row| { lines }, "ON CONFLICT DO NOTHING")`: adds rows. What stands behind
/// the lines is the end of the statement, and may be left out.
macro_rules! insert_rows {
    ($connection:expr, $rows:expr, $table:literal, |$row:pat_param| { $($lines:tt)+ } $(, $end:literal)?) => {
        columns!(read [insert, $connection, $rows, |$row|, $($end)?] $table "excluded" $($lines)+)
    };
}

/// `upsert_rows!(connection, rows, "table", |row| { lines }, "condition")`: adds rows, and changes those that are there
/// with the same key, if the condition holds. It may be left out.
macro_rules! upsert_rows {
    ($connection:expr, $rows:expr, $table:literal, |$row:pat_param| { $($lines:tt)+ } $(, $condition:literal)?) => {
        columns!(read [upsert, $connection, $rows, |$row|, $($condition)?] $table "excluded" $($lines)+)
    };
}

/// `update_rows!(connection, rows, "table", |row| { lines }, "condition")`: changes rows that are there, if the condition
/// holds.
macro_rules! update_rows {
    ($connection:expr, $rows:expr, $table:literal, |$row:pat_param| { $($lines:tt)+ }, $condition:literal) => {
        columns!(read [update, $connection, $rows, |$row|, $condition] $table "new" $($lines)+)
    };
}

/// As `update_rows!`, where several new rows may have the same key: of those for which the condition holds, the one with
/// the lowest `sequence` counts.
macro_rules! update_rows_by_first {
    ($connection:expr, $rows:expr, $table:literal, |$row:pat_param| { $($lines:tt)+ }, $condition:literal) => {
        columns!(read [update_by_first, $connection, $rows, |$row|, $condition] $table "new" $($lines)+)
    };
}

/// Reads lines, one after the other. What it has read of them stands in braces: each column with its parameter and its
/// cast, the names of the keys, and what is set to which expression, in pieces; then the parameters that are left.
macro_rules! columns {
    (read $of:tt $table:literal $new:literal $($lines:tt)+) => {
        columns!($of $table $new {} {} {}
            { "$1" "$2" "$3" "$4" "$5" "$6" "$7" "$8" "$9" "$10" "$11" "$12" "$13" "$14" "$15" "$16"
              "$17" "$18" "$19" "$20" "$21" "$22" "$23" "$24" "$25" "$26" "$27" "$28" "$29" "$30" "$31" "$32" }
            $($lines)+)
    };
    // A column of JSON.
    ($of:tt $table:literal $new:literal { $($columns:tt)* } $keys:tt $sets:tt { $n:literal $($left:tt)* }
        $name:literal: "jsonb" = $value:expr, $($lines:tt)*) => {
        columns!($of $table $new { $($columns)* [$n $name "text" "::jsonb" $value] } $keys $sets { $($left)* }
            $($lines)*)
    };
    // Any other column.
    ($of:tt $table:literal $new:literal { $($columns:tt)* } $keys:tt $sets:tt { $n:literal $($left:tt)* }
        $name:literal: $type:literal = $value:expr, $($lines:tt)*) => {
        columns!($of $table $new { $($columns)* [$n $name $type "" $value] } $keys $sets { $($left)* } $($lines)*)
    };
    // A word in front of a column is dealt with, and the column read as one without.
    ($of:tt $table:literal $new:literal $columns:tt { $($keys:tt)* } $sets:tt $left:tt
        key $name:literal $($lines:tt)*) => {
        columns!($of $table $new $columns { $($keys)* $name } $sets $left $name $($lines)*)
    };
    ($of:tt $table:literal $new:literal $columns:tt $keys:tt { $($sets:tt)* } $left:tt
        set $name:literal: $type:tt = $value:expr => $to:literal, $($lines:tt)*) => {
        columns!($of $table $new $columns $keys { $($sets)* [$name $to] } $left
            $name: $type = $value, $($lines)*)
    };
    ($of:tt $table:literal $new:literal $columns:tt $keys:tt { $($sets:tt)* } $left:tt
        set $name:literal $($lines:tt)*) => {
        columns!($of $table $new $columns $keys { $($sets)* [$name $new "." $name] } $left $name $($lines)*)
    };
    ($of:tt $table:literal $new:literal $columns:tt $keys:tt { $($sets:tt)* } $left:tt
        if $condition:literal { $name:literal: $type:tt = $value:expr, $($grouped:tt)* } $($lines:tt)*) => {
        columns!($of $table $new $columns $keys
            { $($sets)*
              [$name "CASE WHEN " $condition " THEN " $new "." $name " ELSE " $table "." $name " END"] }
            $left $name: $type = $value, if $condition { $($grouped)* } $($lines)*)
    };
    // The columns of a group, one after the other, are dealt with above.
    ($of:tt $table:literal $new:literal $columns:tt $keys:tt $sets:tt $left:tt
        if $condition:literal {} $($lines:tt)*) => {
        columns!($of $table $new $columns $keys $sets $left $($lines)*)
    };
    // All lines are read.
    ($of:tt $table:literal $new:literal $columns:tt $keys:tt $sets:tt $left:tt) => {
        statement!($of $table $columns $keys $sets)
    };
}

/// Writes rows by what was read of the lines. A list is a repetition of pieces, with what stands between two of them, such
/// as `", "`, as its separator.
macro_rules! statement {
    ([insert, $connection:expr, $rows:expr, |$row:pat_param|, $($end:literal)?] $table:literal
        { $([$n:literal $name:literal $type:literal $cast:literal $value:expr])+ } {} {}) => {
        write_rows!(
            $connection,
            $rows,
            "INSERT INTO " $table " (" $($name)", "+ ") SELECT " $($name $cast)", "+
            " FROM UNNEST(" $($n "::" $type "[]")", "+ ") AS new (" $($name)", "+ ")" $(" " $end)?,
            |$row| ($($value),+)
        )
    };
    ([upsert, $connection:expr, $rows:expr, |$row:pat_param|, $($condition:literal)?] $table:literal
        { $([$n:literal $name:literal $type:literal $cast:literal $value:expr])+ } { $($key:literal)+ }
        { $([$set:literal $($to:literal)+])+ }) => {
        write_rows!(
            $connection,
            $rows,
            "INSERT INTO " $table " (" $($name)", "+ ") SELECT " $($name $cast)", "+
            " FROM UNNEST(" $($n "::" $type "[]")", "+ ") AS new (" $($name)", "+ ")"
            " ON CONFLICT (" $($key)", "+ ") DO UPDATE SET " $($set " = " $($to)+)", "+ $(" WHERE " $condition)?,
            |$row| ($($value),+)
        )
    };
    ([update, $connection:expr, $rows:expr, |$row:pat_param|, $condition:literal] $table:literal
        { $([$n:literal $name:literal $type:literal $cast:literal $value:expr])+ } { $($key:literal)+ }
        { $([$set:literal $($to:literal)+])+ }) => {
        write_rows!(
            $connection,
            $rows,
            "UPDATE " $table " SET " $($set " = " $($to)+)", "+
            " FROM (SELECT " $($name $cast)", "+
            " FROM UNNEST(" $($n "::" $type "[]")", "+ ") AS new (" $($name)", "+ ")) AS new"
            " WHERE " $($table "." $key " = new." $key)" AND "+ " AND (" $condition ")",
            |$row| ($($value),+)
        )
    };
    ([update_by_first, $connection:expr, $rows:expr, |$row:pat_param|, $condition:literal] $table:literal
        { $([$n:literal $name:literal $type:literal $cast:literal $value:expr])+ } { $key:literal }
        { $([$set:literal $($to:literal)+])+ }) => {
        write_rows!(
            $connection,
            $rows,
            "UPDATE " $table " SET " $($set " = " $($to)+)", "+
            " FROM (SELECT DISTINCT ON (new." $key ") " $("new." $name $cast)", "+
            " FROM UNNEST(" $($n "::" $type "[]")", "+ ") AS new (" $($name)", "+ ")"
            " JOIN " $table " ON " $table "." $key " = new." $key " AND (" $condition ")"
            " ORDER BY new." $key ", new.sequence) AS new"
            " WHERE " $table "." $key " = new." $key " AND (" $condition ")",
            |$row| ($($value),+)
        )
    };
}

/// `write_rows!(connection, rows, "statement", |row| (value, …))`: asks a statement of a shape of its own, which may be
/// given in pieces, with one parameter a column. It is not asked for no rows.
macro_rules! write_rows {
    ($connection:expr, $rows:expr, $($statement:literal)+, |$row:pat_param| ($($value:expr),+ $(,)?)) => {{
        // Each column is made from its own part of a row.
        #[allow(unused_variables)]
        let written = if $rows.is_empty() {
            Ok(())
        } else {
            let write =
                sqlx::query!("" $(+ $statement)+, $($rows.iter().map(|$row| $value).collect::<Vec<_>>() as _),+);
            write.execute($connection).await.map(|_| ())
        };
        written
    }};
}
