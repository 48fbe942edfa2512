import type { Mutation } from './world.ts';

export type MutationName = string;
export const MUTATIONS: Record<MutationName, Mutation> = {};
