-- Reading and writing anew everything that a master key sealed.

SELECT 1;
