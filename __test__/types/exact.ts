/** Whether a type has been lost on the way: `any` fits everything, and would make every other check pass. */
export type IsAny<T> = 0 extends 1 & T ? true : false;

/** Compiles only for a type that is not `any`. */
export type Known<T> = IsAny<T> extends false ? T : never;
